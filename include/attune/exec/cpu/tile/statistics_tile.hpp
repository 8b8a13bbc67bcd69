// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  logits, saved row -> weights -> sums per row, sums per key
//
// A second pass over a tile of rows. With what the forward pass saved of a row, each weight is known at once, in any
// order of the keys. No value is read.
#pragma once

#include <algorithm>
#include <limits>

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/exec/row_weights.hpp>
#include <attune/exec/saved.hpp>
#include <attune/exec/statistics.hpp>

namespace attune::exec_cpu {

/// The data that all tiles of a call share.
template <class T, class Op>
struct statistics_call {
  Op const& op;
  inputs<Op, tensor<T const>> const& in;
  problem_shape const& p;
  saved_rows<T, Op> const& saved;
  statistics_request const& request;
};

template <class T, class Arch, class Op>
class statistics_tile {
  using types = tile_types<T, Arch, Op>;

 public:
  using batch = typename types::batch;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;
  static constexpr index_t block = types::block;
  using block_memory = tile_block_memory<T, Arch, Op>;
  using call = statistics_call<T, Op>;
  static constexpr index_t tiles_of_task = types::shape_of::tiles;
  static constexpr bool last_keys_first = takes_later_keys_first<Op>;

  struct tile_memory {
    T* packed;
    tile_memory(arena<T>& from, problem_shape const& p) : packed(from.take(packed_queries<T, Arch, Op>::size(p))) {}
  };

  statistics_tile(call const& c, index_t b, index_t h, index_t first_query, tile_memory const& memory)
      : tile_(c.op, {&c.p, b, h, first_query}, memory.packed), call_(&c) {
    pack_contractions(tile_, c.in);
    for (int v = 0; v < vectors; ++v) {
      weights_[v] = weights_of(v);
      sums_[v] = sums{};
      first_key_[v] = batch(T(0));
    }
  }

  key_interval hull() const { return tile_.sees.hull; }

  /// Adds the keys [first, last) of one block to the rows, and their weights to columns[key] unless `columns` is null.
  void accumulate(index_t first, index_t last, block_memory const& memory, double* columns) {
    std::uint64_t bits[types::block];
    auto const s = tile_.seen(first, last, bits);
    if (s.n == 0) return;
    logit_extremes<T, Arch> unused;
    pass_.logits(tile_, call_->in, s, bits, memory, unused);
    T* const pairs = memory.pairs;
    add<true>(pairs, s.first, 0, s.full_first, bits);
    add<false>(pairs, s.first, s.full_first, s.full_last, bits);
    add<true>(pairs, s.first, s.full_last, s.n, bits);
    if (s.first == 0)
      for (int v = 0; v < vectors; ++v) first_key_[v] = batch::load_aligned(pairs + v * lanes);
    if (columns == nullptr) return;
    for (index_t j = 0; j < s.n; ++j) {
      double sum = 0;  // lanes past the last query repeat it, and must not add
      for (index_t l = 0; l < tile_.count; ++l) sum += double(pairs[j * queries + l]);
      columns[s.first + j] += sum;
    }
  }

  void finish(row_statistics<T>& to) const {
    for (int v = 0; v < vectors; ++v) {
      sums const& s = sums_[v];
      batch const shift = tile_.bound.at[v].logit_shift, none(-math::infinity<T>());
      auto const any = s.scored > batch(T(0));
      batch const mean = math::select(any, batch(s.logits / s.scored + shift), none);
      store(to.mean_logit, v, mean);
      store(to.highest_logit, v, attune::detail::or_nan(math::select(any, batch(s.highest_logit + shift), none), mean));
      store(to.highest_weight, v, attune::detail::or_nan(s.highest_weight, s.mass));
      store(to.mass, v, s.mass);
      store(to.first_key, v, first_key_[v]);
      store(to.ground_weight, v, weights_[v].ground);
      store(to.scored, v, s.scored);
      if (call_->request.entropy) store(to.entropy, v, s.entropy);
      if (call_->request.above) store(to.above, v, s.above);
    }
  }

 private:
  using row_weights = attune::detail::row_weights<batch>;
  struct sums {
    batch highest_logit = batch(-math::infinity<T>()), highest_weight = highest_logit;
    batch logits = batch(T(0)), scored = logits, mass = logits, entropy = logits, above = logits;
  };

  row_weights weights_of(int v) const {
    return attune::detail::weights_of_row<Op>(
        call_->saved, tile_.bound.at[v].normalizer, tile_.visible[v],
        [&](std::vector<T> const& x) { return tile_.saved_lanes(call_->saved, x, v); });
  }

  /// Turns logits into weights, in place, 0 where unseen, and sums over the block.
  template <bool Masked>
  ATTUNE_POINTWISE void add(T* pairs, index_t first, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    bool const entropy = call_->request.entropy, counts = call_->request.above.has_value();
    batch const off(-math::infinity<T>()), zero(T(0)), one(T(1)), level(T(call_->request.above.value_or(0)));
    for (int v = 0; v < vectors; ++v) {
      auto const f = tile_.bound.at[v].normalizer;
      row_weights const row = weights_[v];
      sums s;  // a block sums from zero: error grows with the block, not with Lk
      for (index_t j = from; j < to; ++j) {
        T* const at = pairs + j * queries + v * lanes;
        batch const a = batch::load_aligned(at);
        batch w = attune::detail::weight_of<Op>(f, row, a, key<batch>{batch(T(first + j))}), seen = w;
        if constexpr (Masked) {
          auto const who = lanes_of<T, Arch>(bits[j] >> (v * lanes));
          w = simd::select(who, w, zero);
          seen = simd::select(who, w, off);
        }
        w.store_aligned(at);
        s.highest_logit = math::larger(s.highest_logit, a);
        s.highest_weight = math::larger(s.highest_weight, seen);
        s.logits = s.logits + math::select(a == off, zero, a);
        s.scored = s.scored + math::select(a == off, zero, one);
        s.mass = s.mass + w;
        if (counts) s.above = s.above + math::select(seen > level, one, zero);
        if (entropy) s.entropy = s.entropy + attune::detail::entropy_of(w);
      }
      sums& all = sums_[v];
      all.highest_logit = math::larger(all.highest_logit, s.highest_logit);
      all.highest_weight = math::larger(all.highest_weight, s.highest_weight);
      all.logits = all.logits + s.logits;
      all.scored = all.scored + s.scored;
      all.mass = all.mass + s.mass;
      all.entropy = all.entropy + s.entropy;
      all.above = all.above + s.above;
    }
  }

  template <class Number>
  void store(std::vector<Number>& to, int v, batch const& x) const {
    alignas(64) T lane[lanes];
    x.store_aligned(lane);
    for (index_t l = 0; l < lanes && v * lanes + l < tile_.count; ++l)
      to[std::size_t(call_->saved.at(tile_.b, tile_.h, tile_.first_query + v * lanes + l))] = Number(lane[l]);
  }

  tile_rows<T, Arch, Op> tile_;
  call const* call_;
  row_weights weights_[std::size_t(vectors)];
  sums sums_[std::size_t(vectors)];
  batch first_key_[std::size_t(vectors)];
  [[no_unique_address]] row_pass<T, Arch, Op> pass_;
};

}  // namespace attune::exec_cpu
