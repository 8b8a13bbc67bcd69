// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  logits, running reference -> masses -> value sum
//
// The tile of every normalizer with an O(1) state: the recurrence of operators/row_state.hpp. Every variable is a batch
// of rows.
#pragma once

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/exec/cpu/tile/value_sum.hpp>
#include <attune/exec/cpu/tile/write.hpp>

namespace attune::exec_cpu {

/// Memory: the memory of a block, which says how the tile multiplies.
template <class T, class Arch, class Op, class Memory = tile_block_memory<T, Arch, Op>>
class mass_tile {
  using types = tile_types<T, Arch, Op>;
  using pair_values = exec_cpu::pair_values<T, Arch, Op>;

 public:
  using batch = typename types::batch;
  using inputs_type = typename types::inputs_type;
  using normalizer = typename types::normalizer;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;
  static constexpr index_t block = types::block;
  static constexpr normalizer_traits traits = types::traits;
  static constexpr bool adjusted = types::adjusted;
  static constexpr bool factored_share = types::planes::factored_share;
  using block_memory = Memory;
  using products = typename Memory::products;
  static constexpr index_t tiles_of_task = 2 * types::shape_of::tiles;
  static constexpr bool last_keys_first = takes_later_keys_first<Op>;

  /// Memory that lives as long as the tile.
  struct tile_memory {
    T *packed, *sum, *second, *plain;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(packed_queries<T, Arch, Op, products>::size(p))), sum(from.take(queries * p.value_width)),
          second(from.take(adjusted ? queries * p.value_width : 0)),
          plain(from.take(factored_share         ? queries * p.value_width
                          : traits.uniform_share ? plain_sums<T, Arch>::size(p.value_width)
                                                 : 0)) {}
  };

  mass_tile(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h, index_t first_query,
            tile_memory const& memory)
      : tile_(op, {&p, b, h, first_query}, memory.packed), sum_(memory.sum), second_(memory.second) {
    pack_contractions<products>(tile_, in);
    std::fill_n(sum_, queries * p.value_width, T(0));
    if constexpr (adjusted) std::fill_n(second_, queries * p.value_width, T(0));
    if constexpr (factored_share)
      std::fill_n(second_ = memory.plain, queries * p.value_width, T(0));
    else if constexpr (traits.uniform_share)
      plain_ = {memory.plain, p.value_width};
    for (int v = 0; v < vectors; ++v) {
      if constexpr (adjusted)
        reference_[v] = initial_max<batch>();
      else
        reference_[v] =
            initial_reference<normalizer, decltype(tile_.bound.at[v].normalizer), batch>(tile_.bound.at[v].normalizer);
      lowest_[v] = math::infinity<batch>();
      earned_[v] = ground_[v] = batch(T(0));
    }
  }

  /// Before the first block: the running numbers of the ordered sums, number(n, query) for sum number n.
  template <class Number>
  void start_sums(Number const& number)
    requires has_ordered_sums<Op>
  {
    pass_.ordered.start([&](int n, index_t l) { return number(n, (std::max)(tile_.query(l), tile_.p->first_query)); });
  }

  key_interval hull() const { return tile_.sees.hull; }
  tile_place place() const { return tile_.place(); }
  index_t rows() const { return tile_.count; }

  /// Streams the keys [first, last) of one block through the rows. `memory.gated` holds the values of the block after
  /// the value gate.
  ATTUNE_NOINLINE void accumulate(inputs_type const& in, index_t first, index_t last, block_memory const& memory) {
    std::uint64_t bits[types::block];
    auto const s = tile_.seen(first, last, bits);
    if (s.n == 0) return;
    logit_extremes<T, Arch> e;
    for (int v = 0; v < vectors; ++v) e.highest[v] = reference_[v], e.lowest[v] = lowest_[v], e.poison[v] = batch(T(0));
    pass_.logits(tile_, in, s, bits, memory, e);
    for (int v = 0; v < vectors; ++v) lowest_[v] = e.lowest[v];
    if constexpr (traits.reference == mass_reference::running_maximum) raise(e.highest);
    T* const pairs = memory.pairs;
    masses<true>(pairs, 0, s.full_first, bits);
    masses<false>(pairs, s.full_first, s.full_last, bits);
    masses<true>(pairs, s.full_last, s.n, bits);
    gate_all_weights(tile_, pairs, s, bits);
    auto const values = [&] {
      if constexpr (Memory::reads_floats(field::v))
        return values_of(tile_, in, s.first, s.n, memory, first);
      else
        return row_block<T>(nullptr, 0);
    }();
    add_weighted_values(tile_, values, s, pairs, bits, sum_, memory);
    if constexpr (adjusted) add_values(tile_, values, s, pairs + types::pair_buffer, bits, second_);
    if constexpr (factored_share)
      add_values(tile_, values, s, pairs + types::planes::gate * types::pair_buffer, bits, second_);
    else if constexpr (traits.uniform_share)
      plain_.add(values, s.n, s.full_first, s.full_last, bits);
    pair_values::add(tile_, {s.first, s.n}, pairs, sum_);
    if constexpr (adjusted) pair_values::add(tile_, {s.first, s.n}, pairs + types::pair_buffer, second_);
    if constexpr (factored_share)
      pair_values::add(tile_, {s.first, s.n}, pairs + types::planes::gate * types::pair_buffer, second_);
  }

  /// Divides the sums and writes the rows.
  ATTUNE_NOINLINE void finish(inputs_type const& in, outputs<Op, T> const& to, block_memory const& memory) {
    alignas(64) T weight[queries], lse[queries], factor[queries], second[queries];
    for (int v = 0; v < vectors; ++v) {
      batch const zero(T(0));
      if constexpr (adjusted) {
        auto const row =
            finish_adjusted(tile_.bound.at[v].normalizer, reference_[v], earned_[v], lowest_[v], reference_[v]);
        batch const above = reference_[v] - row.low;
        store(weight, v, zero);
        store(lse, v, row.lse + tile_.bound.at[v].logit_shift);
        store(factor, v, above * row.value_factor);
        store(second, v, row.value_factor);
      } else {
        auto const row = finish_masses<normalizer>(tile_.bound.at[v].normalizer, reference_[v], earned_[v], ground_[v],
                                                   tile_.visible[v]);
        store(weight, v, row.ground_weight);
        store(lse, v, row.lse + tile_.bound.at[v].logit_shift);
        store(factor, v, row.value_factor);
        store(second, v, row.share);
      }
    }
    write_out(tile_, in, to, weight, memory, [&](index_t l, index_t d) {
      T x = sum_[d * queries + l] * factor[l];
      if constexpr (adjusted) x += second_[d * queries + l] * second[l];
      if constexpr (factored_share)
        x += second_[d * queries + l] * second[l];
      else if constexpr (traits.uniform_share)
        x += plain_(l, d) * second[l];
      return x;
    });
    for (index_t l = tile_.skipped; l < tile_.count; ++l) {
      if constexpr (Op::has_lse)
        if (!to.lse.values.absent()) to.lse.values(tile_.b, tile_.h, tile_.first_query + l, 0) = lse[l];
      if constexpr (Op::has_ground_weight)
        if (!to.ground_weight.absent()) to.ground_weight(tile_.b, tile_.h, tile_.first_query + l, 0) = weight[l];
    }
  }

  /// Writes the undivided state of each row to `to`.
  template <class States>
  void states(States& to) const {
    alignas(64) T reference[queries], earned[queries], ground[queries], lowest[queries];
    for (int v = 0; v < vectors; ++v) {
      store(reference, v, reference_[v]);
      store(earned, v, earned_[v]);
      store(ground, v, ground_[v]);
      store(lowest, v, lowest_[v]);
    }
    index_t const width = tile_.p->value_width;
    for (index_t l = tile_.skipped; l < tile_.count; ++l) {
      index_t const n = to.at(tile_.b, tile_.h, tile_.first_query + l);
      auto const u = std::size_t(n);
      to.reference[u] = reference[l];
      to.earned[u] = earned[l];
      to.ground[u] = ground[l];
      if constexpr (adjusted) to.lowest[u] = lowest[l];
      for (index_t d = 0; d < width; ++d) {
        to.acc[std::size_t(n * width + d)] = sum_[d * queries + l];
        if constexpr (adjusted) to.second[std::size_t(n * width + d)] = second_[d * queries + l];
        if constexpr (factored_share)
          to.second[std::size_t(n * width + d)] = second_[d * queries + l];
        else if constexpr (traits.uniform_share)
          to.second[std::size_t(n * width + d)] = plain_(l, d);
      }
    }
  }

 private:
  static void store(T* to, int v, batch const& x) { x.store_aligned(to + v * lanes); }

  /// Changes all masses and value sums to higher references.
  void raise(batch const* higher) {
    bool any = false;
    for (int v = 0; v < vectors; ++v) any = any || simd::any(higher[v] > reference_[v]);
    if (!any) return;
    using scale = scale_of_sums<Op, batch>;
    scale factor[vectors];
    batch drop[vectors];
    for (int v = 0; v < vectors; ++v) {
      drop[v] = math::select(higher[v] == reference_[v], batch(T(0)), batch(reference_[v] - higher[v]));
      auto const same = higher[v] == reference_[v];  // also at +inf, where the difference is NaN
      factor[v] = scale(math::select(same, batch(T(1)), math::exp_nonpositive(batch(reference_[v] - higher[v]))));
      reference_[v] = higher[v];
      earned_[v] = earned_[v] * factor[v];
      if constexpr (traits.ground_mass) ground_[v] = ground_[v] * factor[v];
    }
    // sum e (a - m') v = sum e (a - m) v + (m - m') sum e v
    if constexpr (adjusted) add_scaled_rows<T, Arch>(second_, sum_, tile_.p->value_width, drop);
    scale_rows<T, Arch>(sum_, tile_.p->value_width, factor);
    if constexpr (adjusted) scale_rows<T, Arch>(second_, tile_.p->value_width, factor);
  }

  /// Turns logits into the masses that weight the values, in place, and sums earned and ground mass. Masked: unseen
  /// pairs add no mass of any kind.
  template <bool Masked>
  ATTUNE_POINTWISE void masses(T* pairs, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    typename tile_rows<T, Arch, Op>::bound_lanes const f = tile_.bound;
    batch const zero(T(0));
    batch m[vectors], earned[vectors], ground[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      m[v] = reference_[v];
      earned[v] = ground[v] = zero;
    }
    for (index_t j = from; j < to; ++j)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* const at = pairs + j * queries + v * lanes;
        batch const a = batch::load_aligned(at);
        batch e;
        if constexpr (adjusted)
          e = math::exp_nonpositive(batch(a - m[v]));
        else
          e = earned_mass<normalizer>(f.at[v].normalizer, a, m[v]);
        if constexpr (Masked) e = simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), e, zero);
        earned[v] = earned[v] + e;
        if constexpr (traits.ground_mass) {
          batch g = f.at[v].normalizer.ground(a, m[v]);
          if constexpr (Masked) g = simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), g, zero);
          ground[v] = ground[v] + g;
        }
        e.store_aligned(at);
        if constexpr (adjusted) {
          batch const off(-math::infinity<T>());
          math::select(a == off, zero, batch(e * (a - m[v]))).store_aligned(at + types::pair_buffer);
        }
      }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {  // a block sums from zero: error grows with the block, not with Lk
      earned_[v] = earned_[v] + earned[v];
      ground_[v] = ground_[v] + ground[v];
    }
  }

  tile_rows<T, Arch, Op> tile_;
  batch reference_[std::size_t(vectors)], earned_[std::size_t(vectors)], ground_[std::size_t(vectors)],
      lowest_[std::size_t(vectors)];
  T *sum_, *second_;
  plain_sums<T, Arch> plain_;  ///< for a uniform share
  [[no_unique_address]] row_pass<T, Arch, Op> pass_;
};

}  // namespace attune::exec_cpu
