// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  contract -> logits, running reference -> masses -> value sum
//
// One tile of query rows, streamed over keys: the recurrence of operators/row_state.hpp with a batch of rows in every variable.
// The only code of this executor that policies melt into.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include <attune/core/simd_lift.hpp>
#include <attune/exec/cpu/microkernel.hpp>
#include <attune/exec/cpu/pack.hpp>
#include <attune/exec/cpu/values.hpp>
#include <attune/exec/cpu/visibility.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_cpu {

/// Elements of scratch that a tile needs, rounded so that each part stays aligned.
template <class T>
constexpr index_t padded(index_t elements) {
  constexpr index_t unit = 64 / index_t(sizeof(T));
  return (elements + unit - 1) / unit * unit;
}

/// One tile of `tiling::queries` rows of one head.
template <class T, class Arch, class Op>
class forward_tile {
 public:
  using shape_of = tiling<T, Arch>;
  using batch = typename shape_of::batch;
  using bool_batch = xsimd::batch_bool<T, Arch>;
  using inputs_type = inputs<Op, tensor<T const>>;
  using normalizer = typename Op::normalizer_policy;
  using contractions = typename Op::contractions;
  static constexpr int vectors = shape_of::vectors, lanes = shape_of::lanes, queries = shape_of::queries;
  static constexpr normalizer_traits traits = normalizer::traits;
  static constexpr bool running = traits.reference == mass_reference::running_maximum;
  /// Buffers of one block: one per contraction, at least one for the weights.
  static constexpr int buffers = std::max(1, contractions::size);

  /// Scratch of a tile that lives as long as the tile: packed queries and the value sum.
  static index_t resident_scratch(problem_shape const& p) {
    return padded<T>(queries * p.width) + padded<T>(queries * p.gate_width) + padded<T>(queries * p.value_width);
  }
  /// Scratch shared by all tiles of a thread: the buffers of a block and copies of rows that do not lie contiguously.
  static index_t block_scratch(problem_shape const& p) {
    index_t const block = shape_of::key_block;
    return buffers * padded<T>(block * queries) + padded<T>(block * p.width) + padded<T>(block * p.gate_width) +
           padded<T>(block * p.value_width);
  }

  forward_tile(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h, index_t first_query,
               T* resident)
      : forward_tile(std::make_index_sequence<std::size_t(vectors)>{}, op, in, p, b, h, first_query, resident) {}

  tile_visibility<typename Op::mask_policy, queries> sees;

  /// Streams the keys [first, last) of one block through the rows.
  void absorb(inputs_type const& in, index_t first, index_t last, T* scratch) {
    std::uint64_t bits[shape_of::key_block];
    first = std::max(first, sees.hull.first);
    last = std::min(last, sees.hull.last);
    if (first >= last) return;
    auto const seen = sees.block(first, last, bits);
    using visibility = decltype(seen);
    if (seen == visibility::none) return;
    index_t const n = last - first;
    T* const pairs = scratch;
    T* const rows = scratch + buffers * padded<T>(shape_of::key_block * queries);
    contract_all(in, first, n, pairs, rows);

    // A block on the edge of a mask may still hold a stretch that everybody sees: only the rest pays for masking.
    index_t full_first = 0, full_last = seen == visibility::all ? n : 0;
    if (seen == visibility::some && !sees.common.empty()) {
      full_first = std::clamp(sees.common.first - first, index_t(0), n);
      full_last = std::clamp(sees.common.last - first, full_first, n);
    }
    batch top[vectors];
    for (int v = 0; v < vectors; ++v) top[v] = reference_[v];
    logits<true>(pairs, first, 0, full_first, bits, top);
    logits<false>(pairs, first, full_first, full_last, bits, top);
    logits<true>(pairs, first, full_last, n, bits, top);
    if constexpr (running) raise(top);
    masses<true>(pairs, 0, full_first, bits);
    masses<false>(pairs, full_first, full_last, bits);
    masses<true>(pairs, full_last, n, bits);
    add_values(in, first, n, full_first, full_last, pairs, rows, bits);
  }

  /// Divides and writes the rows.
  void finish(inputs_type const& in, outputs<Op, T> const& to) {
    alignas(64) T weight[queries], lse[queries], factor[queries];
    for (int v = 0; v < vectors; ++v) {
      auto const row = finish_masses<normalizer>(bound_.at[v].normalizer, reference_[v], earned_[v], ground_[v], visible_[v]);
      row.value_factor.store_aligned(factor + v * lanes);
      row.ground_weight.store_aligned(weight + v * lanes);
      (row.lse + bound_.at[v].logit_shift).store_aligned(lse + v * lanes);
    }
    for (index_t l = 0; l < count_; ++l) {
      index_t const i = first_query_ + l;
      T* const out = to.out.row(b_, h_, i);
      index_t const step = to.out.steps().feature;
      for (index_t d = 0; d < p_->value_width; ++d) out[d * step] = sum_[d * queries + l] * factor[l];
      if constexpr (traits.ground_value) {
        T const* const v0 = detail::ground_value_row(in.v0, b_, h_, i);
        index_t const v0_step = in.v0.steps().feature;
        for (index_t d = 0; d < p_->value_width; ++d) out[d * step] += weight[l] * v0[d * v0_step];
      }
      if constexpr (Op::has_lse)
        if (!to.lse.values.absent()) to.lse.values(b_, h_, i, 0) = lse[l];
      if constexpr (Op::has_ground_weight)
        if (!to.ground_weight.absent()) to.ground_weight(b_, h_, i, 0) = weight[l];
    }
  }

  /// Hands the undivided state of each row to visit(query, reference, earned, ground, d -> value sum).
  template <class Visit>
  void states(Visit const& visit) const {
    alignas(64) T reference[queries], earned[queries], ground[queries];
    for (int v = 0; v < vectors; ++v) {
      reference_[v].store_aligned(reference + v * lanes);
      earned_[v].store_aligned(earned + v * lanes);
      ground_[v].store_aligned(ground + v * lanes);
    }
    for (index_t l = 0; l < count_; ++l)
      visit(first_query_ + l, reference[l], earned[l], ground[l], [&](index_t d) { return sum_[d * queries + l]; });
  }

 private:
  using bound = decltype(std::declval<Op const&>().bind(std::declval<row<batch> const&>()));
  struct bound_lanes {
    bound at[std::size_t(vectors)];
  };

  template <std::size_t... V>
  forward_tile(std::index_sequence<V...>, Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h,
               index_t first_query, T* resident)
      : sees(op.mask, p, b, h, first_query), p_(&p), b_(b), h_(h), first_query_(first_query),
        count_(std::min(index_t(queries), p.queries - first_query)), bound_{{op.bind(lane_row(p, index_t(V)))...}} {
    q_ = resident;
    gate_q_ = q_ + padded<T>(queries * p.width);
    sum_ = gate_q_ + padded<T>(queries * p.gate_width);
    if constexpr (Op::uses(field::q)) pack_queries<queries>(q_, in.q, b, h, first_query);
    if constexpr (Op::uses(field::gate_q)) pack_queries<queries>(gate_q_, in.gate_q, b, h, first_query);
    std::fill_n(sum_, queries * p.value_width, T(0));
    for (int v = 0; v < vectors; ++v) {
      reference_[v] = initial_reference<normalizer, decltype(bound_.at[v].normalizer), batch>(bound_.at[v].normalizer);
      earned_[v] = ground_[v] = batch(T(0));
    }
  }

  /// The facts of lanes [v * lanes, (v + 1) * lanes).
  row<batch> lane_row(problem_shape const& p, index_t v) {
    alignas(64) T position[lanes], count[lanes], log_count[lanes];
    for (index_t l = 0; l < lanes; ++l) {
      index_t const n = sees.count[v * lanes + l];
      position[l] = T(std::min(first_query_ + v * lanes + l, p.queries - 1) + p.offset);
      count[l] = T(n);
      log_count[l] = n > 0 ? T(std::log(double(n))) : T(0);
    }
    visible_[v] = batch::load_aligned(count);
    T const inverse_sqrt_width = p.width > 0 ? T(1 / std::sqrt(double(p.width))) : T(0);
    return {{b_, h_, first_query_ + v * lanes, p.queries},
            batch::load_aligned(position),
            visible_[v],
            batch::load_aligned(log_count),
            batch(inverse_sqrt_width),
            batch(T(0))};
  }

  /// Buffer c receives the values of contraction c for all pairs of the block.
  void contract_all(inputs_type const& in, index_t first, index_t n, T* pairs, T* rows) {
    contract_each(static_cast<contractions*>(nullptr), in, first, n, pairs, rows);
  }
  template <class... C>
  void contract_each(contraction::list<C...>*, [[maybe_unused]] inputs_type const& in, [[maybe_unused]] index_t first,
                     [[maybe_unused]] index_t n, [[maybe_unused]] T* pairs, [[maybe_unused]] T* rows) {
    (..., (contract_one(C{}, in, first, n, pairs, rows), pairs += padded<T>(shape_of::key_block * queries)));
  }
  void contract_one(contraction::dot, inputs_type const& in, index_t first, index_t n, T* to, T* rows) {
    row_block<T> const keys(in.k, b_, p_->group(h_, p_->key_heads), first, n, rows);
    contract<T, Arch>(to, keys.data, keys.step, q_, p_->width, n);
  }
  void contract_one(contraction::gate_dot, inputs_type const& in, index_t first, index_t n, T* to, T* rows) {
    row_block<T> const keys(in.gate_k, b_, p_->group(h_, p_->gate_key_heads), first, n,
                            rows + padded<T>(shape_of::key_block * p_->width));
    contract<T, Arch>(to, keys.data, keys.step, gate_q_, p_->gate_width, n);
  }
  void contract_one(contraction::given_scores, inputs_type const& in, index_t first, index_t n, T* to, T*) {
    pack_pairs<queries>(to, in.scores, b_, h_, first_query_, first, n);
  }
  void contract_one(contraction::given_gates, inputs_type const& in, index_t first, index_t n, T* to, T*) {
    pack_pairs<queries>(to, in.gates, b_, h_, first_query_, first, n);
  }

  /// Contracted values -> logits, in place of the first buffer, and their maximum. Masked: unseen pairs become -inf.
  template <bool Masked>
  ATTUNE_NOINLINE void logits(T* pairs, index_t first, index_t from, index_t to, std::uint64_t const* bits, batch* highest) {
    if (from >= to) return;
    bound_lanes const f = bound_;  // a local copy: stores of logits then cannot be thought to change it
    batch top[vectors];
    for (int v = 0; v < vectors; ++v) top[v] = highest[v];
    constexpr index_t buffer = padded<T>(shape_of::key_block * queries);
    for (index_t j = from; j < to; ++j) {
      key<batch> const k{batch(T(first + j))};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* const at = pairs + j * queries + v * lanes;
        batch x[buffers];
        for (int c = 0; c < contractions::size; ++c) x[c] = batch::load_aligned(at + c * buffer);
        batch a = f.at[v].logit(x, k);
        if constexpr (Masked)
          a = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), a, batch(-std::numeric_limits<T>::infinity()));
        if constexpr (running) top[v] = math::larger(top[v], a);
        a.store_aligned(at);
      }
    }
    for (int v = 0; v < vectors; ++v) highest[v] = top[v];
  }

  /// Expresses all masses and value sums relative to higher references.
  void raise(batch const* higher) {
    bool any = false;
    for (int v = 0; v < vectors; ++v) any = any || xsimd::any(higher[v] > reference_[v]);
    if (!any) return;
    batch factor[vectors];
    for (int v = 0; v < vectors; ++v) {
      auto const same = higher[v] == reference_[v];  // at +inf too, where the difference has no value
      factor[v] = math::select(same, batch(T(1)), math::exp_nonpositive(batch(reference_[v] - higher[v])));
      reference_[v] = higher[v];
      earned_[v] = earned_[v] * factor[v];
      if constexpr (traits.ground_mass) ground_[v] = ground_[v] * factor[v];
    }
    scale_rows<T, Arch>(sum_, p_->value_width, factor);
  }

  /// Logits -> earned masses, in place; sums of earned and ground mass. Masked: unseen pairs leave no mass of any kind.
  template <bool Masked>
  ATTUNE_NOINLINE void masses(T* pairs, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    bound_lanes const f = bound_;
    batch m[vectors], earned[vectors], ground[vectors];
    for (int v = 0; v < vectors; ++v) {
      m[v] = reference_[v];
      earned[v] = ground[v] = batch(T(0));
    }
    for (index_t j = from; j < to; ++j)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* const at = pairs + j * queries + v * lanes;
        batch const a = batch::load_aligned(at);
        batch e = f.at[v].normalizer.earned(a, m[v]);
        if constexpr (Masked) e = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), e, batch(T(0)));
        earned[v] = earned[v] + e;
        if constexpr (traits.ground_mass) {
          batch g = f.at[v].normalizer.ground(a, m[v]);
          if constexpr (Masked) g = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), g, batch(T(0)));
          ground[v] = ground[v] + g;
        }
        e.store_aligned(at);
      }
    for (int v = 0; v < vectors; ++v) {  // a block sums from zero: error grows with the block, not with Lk
      earned_[v] = earned_[v] + earned[v];
      ground_[v] = ground_[v] + ground[v];
    }
  }

  /// sum += P^T V over the block. In the masked stretches a weight of 0 may stand for "not seen", and 0 * NaN is NaN: where a
  /// value there is not finite, only the lanes that see the key take part.
  void add_values(inputs_type const& in, index_t first, index_t n, index_t full_first, index_t full_last, T const* pairs,
                  T* rows, std::uint64_t const* bits) {
    row_block<T> const values(
        in.v, b_, p_->group(h_, p_->value_heads), first, n,
        rows + padded<T>(shape_of::key_block * p_->width) + padded<T>(shape_of::key_block * p_->gate_width));
    if (finite_rows<T, Arch>(values, p_->value_width, 0, full_first) &&
        finite_rows<T, Arch>(values, p_->value_width, full_last, n))
      accumulate<T, Arch>(sum_, values.data, values.step, pairs, n, p_->value_width);
    else
      accumulate_seen<T, Arch>(sum_, values, p_->value_width, n, full_first, full_last, pairs, bits);
  }

  problem_shape const* p_;
  index_t b_, h_, first_query_, count_;
  batch visible_[vectors];
  bound_lanes bound_;
  batch reference_[vectors], earned_[vectors], ground_[vectors];
  T *q_ = nullptr, *gate_q_ = nullptr, *sum_ = nullptr;
};

}  // namespace attune::exec_cpu
