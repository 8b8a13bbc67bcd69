// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The sums of the rows of a tile, in registers: how they begin, and what is written when all keys have been added.
#pragma once

#include <attune/exec/cuda/tile/tile_rows.hpp>
#include <attune/exec/states.hpp>

namespace attune::exec_cuda {

/// operators/row_state.hpp for the 16 MI rows of a warp. A lane has columns 8 n + 2 (l % 4) and the next of value sums,
/// and the masses of the same columns of scores.
template <class W, class Op, class E, class C>
class row_sums : protected tile_rows<W, Op, E, C> {
  using base = tile_rows<W, Op, E, C>;

 protected:
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using facts = tile_facts<Op>;
  using base::at_, base::c_, base::quad, base::record, base::row_in_group, base::row_of;
  using normalizer = typename Op::normalizer_policy;
  using bound = bound_operator<Op, typename tile_format<E>::scalar>;
  static constexpr normalizer_traits is = facts::is;
  static constexpr int R = 2 * C::mi, columns = C::width / 8;

  A o_[C::mi][columns][4], second_[facts::second ? C::mi : 1][facts::second ? columns : 1][4];
  // Of affine operators, the logit is |slope| s + level, where s is a product, and log2 of a mass is scale s + gap: so
  // the reference is level - gap / log2 e.
  static constexpr bool needs_level = facts::affine && (!facts::fused || is.ground_mass);
  A scale_[facts::affine ? R : 1], gap_[facts::affine ? R : 1], level_[needs_level ? R : 1];
  A reference_[facts::affine ? 1 : R], lowest_[facts::range ? R : 1];
  A earned_[R], ground_[is.ground_mass ? R : 1];
  of<bound> f_[R];

  ATTUNE_LANE row_sums(forward_call<Op, E> const& c, typename W::shared sm, int warp, block_place at)
      : base(c, sm, warp, at) {}

  /// The rows before any key. Returns whether a slope is negative.
  ATTUNE_LANE of<bool> start() {
    of<bool> negative;
    W::for_lanes([&](int l) { W::at(negative, l) = false; });
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        row_record<Op> const& x = record(r, l);
        __builtin_memcpy(&W::at(f_[r], l), &x.bound, sizeof(bound));
        if constexpr (facts::affine) {
          W::at(scale_[r], l) = ::fabsf(x.slope) * approximate::log2e;
          W::at(gap_[r], l) = first_gap(x);
        } else {
          W::at(reference_[r], l) = x.reference;
        }
        if constexpr (needs_level) W::at(level_[r], l) = x.level;
        W::at(earned_[r], l) = 0.f;
        if constexpr (is.ground_mass) W::at(ground_[r], l) = 0.f;
        if constexpr (facts::range) W::at(lowest_[r], l) = attune::detail::limits<float>::infinity;
        W::at(negative, l) = W::at(negative, l) || x.slope < 0;
      });
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int d = 0; d < columns; ++d) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e) {
          W::for_lanes([&](int l) { W::at(o_[i][d][e], l) = 0.f; });
          if constexpr (facts::second) W::for_lanes([&](int l) { W::at(second_[i][d][e], l) = 0.f; });
        }
      }
    }
    return negative;
  }

  /// Writes what the rows are: out, lse and ground weight, and what a backward pass needs.
  ATTUNE_LANE void finish() {
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      auto const plus = [](float a, float b) { return a + b; };
      A const earned = quad(earned_[r], plus);
      A ground = W::each_lane([](int) { return 0.f; }), lowest = ground;
      if constexpr (is.ground_mass) ground = quad(ground_[r], plus);
      if constexpr (facts::range) lowest = quad(lowest_[r], [](float a, float b) { return b < a ? b : a; });
      W::for_lanes([&](int l) {
        if (row_in_group(r, l) >= c_.rows) return;
        group_row const at = row_of(r, l);
        row_record<Op> const& mine = c_.records[c_.row_number(at_.batch, at.head, at.query)];
        bound_operator<Op, float> const& f = mine.bound;
        float const m = reference_of(mine, r, l);
        if (c_.saved.reference != nullptr) save(at, r, l, m, W::at(earned, l), W::at(ground, l), W::at(lowest, l));
        float factor, of_second = 0, above = 0, weight = 0, lse;
        if constexpr (facts::range) {
          auto const done = finish_adjusted(f.normalizer, m, W::at(earned, l), W::at(lowest, l), m);
          factor = done.value_factor;
          above = m - done.low;
          lse = done.lse;
        } else {
          auto const done =
              finish_masses<normalizer>(f.normalizer, m, W::at(earned, l), W::at(ground, l), mine.visible);
          factor = done.value_factor;
          of_second = done.share;
          weight = done.ground_weight;
          lse = done.lse;
        }
        ATTUNE_UNROLL
        for (int d = 0; d < columns; ++d) {
          int const column = 8 * d + 2 * (l & 3);
          if (column >= c_.p.value_width) break;
          float pair[2];
          ATTUNE_UNROLL
          for (int e = 0; e < 2; ++e) {
            float x = W::at(o_[r / 2][d][2 * (r % 2) + e], l);
            if constexpr (facts::range)
              x = (W::at(second_[r / 2][d][2 * (r % 2) + e], l) + above * x) * factor;
            else if constexpr (facts::second)
              x = x * factor + W::at(second_[r / 2][d][2 * (r % 2) + e], l) * of_second;
            else
              x = x * factor;
            pair[e] = x;
            if (Op::uses(field::v0) || Op::has_output_gate)
              if (column + e < c_.p.value_width)
                pair[e] = attune::detail::finished_element<float>(c_.in, c_.p, f, x, weight, at_.batch, at.head,
                                                                  at.query, column + e);
          }
          E* const to = c_.to.out.row(at_.batch, at.head, at.query) + column * c_.to.out.steps().feature;
          if (c_.stores_pairs) {
            if constexpr (sizeof(E) == 4) {
              store(to, __builtin_bit_cast(std::uint32_t, pair[0]) |
                            std::uint64_t(__builtin_bit_cast(std::uint32_t, pair[1])) << 32);
            } else {
              E const both[2] = {E(pair[0]), E(pair[1])};
              store(to, both[0].bits | std::uint32_t(both[1].bits) << 16);
            }
          } else {
            to[0] = E(pair[0]);
            if (column + 1 < c_.p.value_width) to[c_.to.out.steps().feature] = E(pair[1]);
          }
        }
        if ((l & 3) == 0) base::write_numbers(f, weight, lse, at);
      });
    }
  }

 private:
  /// Two features in one store.
  template <class Bits>
  ATTUNE_LANE static void store(E* to, Bits bits) {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<Bits*>(to) = bits;
#else
    std::memcpy(static_cast<void*>(to), &bits, sizeof bits);
#endif
  }
  ATTUNE_LANE static float first_gap(row_record<Op> const& x) { return (x.level - x.reference) * approximate::log2e; }
  ATTUNE_LANE float reference_of([[maybe_unused]] row_record<Op> const& mine, int r, int l) const {
    if constexpr (facts::affine) {
      float const gap = W::at(gap_[r], l);
      return gap == first_gap(mine) ? mine.reference : mine.level - gap * approximate::ln2;
    } else {
      return W::at(reference_[r], l);
    }
  }
  /// The state of a row, as exec/states.hpp lays it out.
  ATTUNE_LANE void save(group_row const& at, int r, int l, float m, float earned, float ground, float lowest) const {
    saved_arrays const& to = c_.saved;
    index_t const n = c_.row_number(at_.batch, at.head, at.query), width = c_.p.value_width;
    ATTUNE_UNROLL
    for (int d = 0; d < columns; ++d) {
      ATTUNE_UNROLL
      for (int e = 0; e < 2; ++e) {
        int const column = 8 * d + 2 * (l & 3) + e;
        if (column >= width) continue;
        to.acc[n * width + column] = W::at(o_[r / 2][d][2 * (r % 2) + e], l);
        if constexpr (facts::second) to.second[n * width + column] = W::at(second_[r / 2][d][2 * (r % 2) + e], l);
      }
    }
    if ((l & 3) != 0) return;
    to.reference[n] = m;
    to.earned[n] = earned;
    to.ground[n] = ground;
    to.lowest[n] = lowest;
  }
};

}  // namespace attune::exec_cuda
