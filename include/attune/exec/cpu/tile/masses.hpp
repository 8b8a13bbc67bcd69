// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  logits, running reference -> masses -> value sum
//
// The tile of every normalizer with an O(1) state: the recurrence of operators/row_state.hpp with a batch of rows in
// every variable.
#pragma once

#include <attune/exec/cpu/products/lane_bits.hpp>
#include <attune/exec/cpu/tile/logits.hpp>

namespace attune::exec_cpu {

template <class T, class Arch, class Op>
class mass_tile : public logit_tile<T, Arch, Op> {
  using base = logit_tile<T, Arch, Op>;

 public:
  using base::lanes;
  using base::queries;
  using base::sees;
  using base::traits;
  using base::vectors;
  using typename base::batch;
  using typename base::inputs_type;
  using typename base::normalizer;
  static constexpr bool adjusted = traits.family == row_family::adjusted;
  static constexpr index_t tiles_of_task = 2 * base::shape_of::tiles;

  using typename base::block_memory;
  /// Memory that lives as long as the tile.
  struct tile_memory {
    T *packed, *sum, *second, *plain;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(base::packed_scratch(p))), sum(from.take(queries * p.value_width)),
          second(from.take(adjusted ? queries * p.value_width : 0)),
          plain(from.take(traits.uniform_share ? plain_sums<T, Arch>::size(p.value_width) : 0)) {}
  };

  mass_tile(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h, index_t first_query,
            tile_memory const& memory)
      : base(op, in, p, b, h, first_query, memory.packed), sum_(memory.sum), second_(memory.second) {
    std::fill_n(sum_, queries * p.value_width, T(0));
    if constexpr (adjusted) std::fill_n(second_, queries * p.value_width, T(0));
    if constexpr (traits.uniform_share) plain_ = {memory.plain, p.value_width};
    for (int v = 0; v < vectors; ++v) {
      if constexpr (adjusted)
        reference_[v] = unseen_reference<batch>();
      else
        reference_[v] =
            initial_reference<normalizer, decltype(bound_.at[v].normalizer), batch>(bound_.at[v].normalizer);
      lowest_[v] = math::infinity<batch>();
      earned_[v] = ground_[v] = batch(T(0));
    }
  }

  /// Streams the keys [first, last) of one block through the rows; `memory.gated` holds its values behind the value
  /// gate.
  ATTUNE_NOINLINE void absorb(inputs_type const& in, index_t first, index_t last, block_memory const& memory) {
    std::uint64_t bits[base::block];
    auto const s = this->seen(first, last, bits);
    if (s.n == 0) return;
    typename base::extremes e;
    for (int v = 0; v < vectors; ++v) e.highest[v] = reference_[v], e.lowest[v] = lowest_[v], e.poison[v] = batch(T(0));
    this->evaluate(in, s, bits, memory, e);
    for (int v = 0; v < vectors; ++v) lowest_[v] = e.lowest[v];
    if constexpr (traits.reference == mass_reference::running_maximum) raise(e.highest);
    T* const pairs = memory.pairs;
    masses<true>(pairs, 0, s.full_first, bits);
    masses<false>(pairs, s.full_first, s.full_last, bits);
    masses<true>(pairs, s.full_last, s.n, bits);
    row_block<T> const values = this->values(in, s.first, s.n, memory, first);
    this->add_values(values, s, pairs, bits, sum_);
    if constexpr (adjusted) this->add_values(values, s, pairs + base::pair_buffer, bits, second_);
    if constexpr (traits.uniform_share) plain_.add(values, s.n, s.full_first, s.full_last, bits);
  }

  /// Divides and writes the rows.
  ATTUNE_NOINLINE void finish(inputs_type const& in, outputs<Op, T> const& to, block_memory const& memory) {
    alignas(64) T weight[queries], lse[queries], factor[queries], second[queries];
    for (int v = 0; v < vectors; ++v) {
      batch const zero(T(0));
      if constexpr (adjusted) {
        auto const row = finish_adjusted(bound_.at[v].normalizer, reference_[v], earned_[v], lowest_[v], reference_[v]);
        batch const above = reference_[v] - row.low;
        store(weight, v, zero);
        store(lse, v, row.lse + bound_.at[v].logit_shift);
        store(factor, v, above * row.value_factor);
        store(second, v, row.value_factor);
      } else {
        auto const row =
            finish_masses<normalizer>(bound_.at[v].normalizer, reference_[v], earned_[v], ground_[v], visible_[v]);
        store(weight, v, row.ground_weight);
        store(lse, v, row.lse + bound_.at[v].logit_shift);
        store(factor, v, row.value_factor);
        store(second, v, row.share);
      }
    }
    this->write_out(in, to, weight, memory, [&](index_t l, index_t d) {
      T x = sum_[d * queries + l] * factor[l];
      if constexpr (adjusted) x += second_[d * queries + l] * second[l];
      if constexpr (traits.uniform_share) x += plain_(l, d) * second[l];
      return x;
    });
    for (index_t l = 0; l < count_; ++l) {
      if constexpr (Op::has_lse)
        if (!to.lse.values.absent()) to.lse.values(b_, h_, first_query_ + l, 0) = lse[l];
      if constexpr (Op::has_ground_weight)
        if (!to.ground_weight.absent()) to.ground_weight(b_, h_, first_query_ + l, 0) = weight[l];
    }
  }

  /// Hands the undivided state of each row to `to`.
  template <class States>
  void states(States& to) const {
    alignas(64) T reference[queries], earned[queries], ground[queries], lowest[queries];
    for (int v = 0; v < vectors; ++v) {
      store(reference, v, reference_[v]);
      store(earned, v, earned_[v]);
      store(ground, v, ground_[v]);
      store(lowest, v, lowest_[v]);
    }
    index_t const width = p_->value_width;
    for (index_t l = 0; l < count_; ++l) {
      index_t const n = to.at(b_, h_, first_query_ + l);
      auto const u = std::size_t(n);
      to.reference[u] = reference[l];
      to.earned[u] = earned[l];
      to.ground[u] = ground[l];
      if constexpr (adjusted) to.lowest[u] = lowest[l];
      for (index_t d = 0; d < width; ++d) {
        to.acc[std::size_t(n * width + d)] = sum_[d * queries + l];
        if constexpr (adjusted) to.second[std::size_t(n * width + d)] = second_[d * queries + l];
        if constexpr (traits.uniform_share) to.second[std::size_t(n * width + d)] = plain_(l, d);
      }
    }
  }

 private:
  using base::b_;
  using base::bound_;
  using base::count_;
  using base::first_query_;
  using base::h_;
  using base::p_;
  using base::visible_;

  static void store(T* to, int v, batch const& x) { x.store_aligned(to + v * lanes); }

  /// Expresses all masses and value sums relative to higher references.
  void raise(batch const* higher) {
    bool any = false;
    for (int v = 0; v < vectors; ++v) any = any || xsimd::any(higher[v] > reference_[v]);
    if (!any) return;
    batch factor[vectors], drop[vectors];
    for (int v = 0; v < vectors; ++v) {
      drop[v] = math::select(higher[v] == reference_[v], batch(T(0)), batch(reference_[v] - higher[v]));
      auto const same = higher[v] == reference_[v];  // at +inf too, where the difference has no value
      factor[v] = math::select(same, batch(T(1)), math::exp_nonpositive(batch(reference_[v] - higher[v])));
      reference_[v] = higher[v];
      earned_[v] = earned_[v] * factor[v];
      if constexpr (traits.ground_mass) ground_[v] = ground_[v] * factor[v];
    }
    // sum e (a - m') v = sum e (a - m) v + (m - m') sum e v
    if constexpr (adjusted) add_scaled_rows<T, Arch>(second_, sum_, p_->value_width, drop);
    scale_rows<T, Arch>(sum_, p_->value_width, factor);
    if constexpr (adjusted) scale_rows<T, Arch>(second_, p_->value_width, factor);
  }

  /// Logits -> masses that weigh values, in place; sums of earned and ground mass. Masked: unseen pairs leave no mass
  /// of any kind.
  template <bool Masked>
  ATTUNE_NOINLINE void masses(T* pairs, index_t from, index_t to, std::uint64_t const* bits) {
    if (from >= to) return;
    typename base::bound_lanes const f = bound_;
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
          e = f.at[v].normalizer.earned(a, m[v]);
        if constexpr (Masked) e = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), e, zero);
        earned[v] = earned[v] + e;
        if constexpr (traits.ground_mass) {
          batch g = f.at[v].normalizer.ground(a, m[v]);
          if constexpr (Masked) g = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), g, zero);
          ground[v] = ground[v] + g;
        }
        e.store_aligned(at);
        if constexpr (adjusted) {
          batch const off(-math::infinity<T>());
          math::select(a == off, zero, batch(e * (a - m[v]))).store_aligned(at + base::pair_buffer);
        }
      }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {  // a block sums from zero: error grows with the block, not with Lk
      earned_[v] = earned_[v] + earned[v];
      ground_[v] = ground_[v] + ground[v];
    }
  }

  batch reference_[std::size_t(vectors)], earned_[std::size_t(vectors)], ground_[std::size_t(vectors)],
      lowest_[std::size_t(vectors)];
  T *sum_, *second_;
  plain_sums<T, Arch> plain_;  ///< of a uniform share
};

}  // namespace attune::exec_cpu
