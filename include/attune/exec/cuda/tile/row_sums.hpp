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
class row_sums {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using facts = tile_facts<Op>;
  using tile = tile_rows<W, Op, E, C>;
  using normalizer = typename Op::normalizer_policy;
  using bound = bound_operator<Op, typename tile_format<E>::scalar>;
  static constexpr normalizer_traits is = facts::is;
  static constexpr int R = tile::R, columns = C::width / 8;

 public:
  A o[C::mi][columns][4], second[facts::second ? C::mi : 1][facts::second ? columns : 1][4];
  // Of affine operators, the logit is |slope| s + level, where s is a product, and log2 of a mass is scale s + gap: so
  // the reference is level - gap / log2 e.
  static constexpr bool needs_level = facts::affine && (!facts::fused || is.ground_mass);
  A scale[facts::affine ? R : 1], gap[facts::affine ? R : 1], level[needs_level ? R : 1];
  A reference[facts::affine ? 1 : R], lowest[facts::range ? R : 1];
  A earned[R], ground[is.ground_mass ? R : 1];
  of<bound> f[R];

  /// The rows before any key. Returns whether a slope is negative.
  ATTUNE_LANE of<bool> start(tile const& rows) {
    of<bool> negative = W::each_lane([](int) { return false; });
    each_row<W, R>([&](int r, int l) {
      row_record<Op> const& x = rows.record(rows.row_of(r, l));
      __builtin_memcpy(&W::at(f[r], l), &x.bound, sizeof(bound));
      if constexpr (facts::affine) {
        W::at(scale[r], l) = ::fabsf(x.slope) * approximate::log2e;
        W::at(gap[r], l) = first_gap(x);
      } else {
        W::at(reference[r], l) = x.reference;
      }
      if constexpr (needs_level) W::at(level[r], l) = x.level;
      W::at(earned[r], l) = 0.f;
      if constexpr (is.ground_mass) W::at(ground[r], l) = 0.f;
      if constexpr (facts::range) W::at(lowest[r], l) = attune::detail::limits<float>::infinity;
      W::at(negative, l) = W::at(negative, l) || x.slope < 0;
    });
    each_number<W, C::mi, columns>([&](int i, int d, int e, int l) {
      W::at(o[i][d][e], l) = 0.f;
      if constexpr (facts::second) W::at(second[i][d][e], l) = 0.f;
    });
    return negative;
  }

  /// Makes the masses relative to the new maxima.
  ATTUNE_LANE void raise(A const (&high)[R]) {
    A factor[R], rise[R];
    of<bool> moved = W::each_lane([](int) { return false; });
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      A const top = over_four<W>(high[r], [](float a, float b) { return ::fmaxf(a, b); });
      W::for_lanes([&](int l) {
        bool higher;
        if constexpr (facts::affine) {
          float const x = -(W::at(scale[r], l) * W::at(top, l)), by = approximate::ex2(x - W::at(gap[r], l));
          higher = x < W::at(gap[r], l);
          W::at(factor[r], l) = higher ? by : 1.f;
          if (higher) W::at(gap[r], l) = x;
        } else {
          float const x = W::at(top, l), m = W::at(reference[r], l);
          higher = m < x;
          W::at(factor[r], l) = higher ? approximate::ex2((m - x) * approximate::log2e) : 1.f;
          W::at(rise[r], l) = higher ? x - m : 0.f;
          if (higher) W::at(reference[r], l) = x;
        }
        W::at(earned[r], l) *= W::at(factor[r], l);
        if constexpr (is.ground_mass) W::at(ground[r], l) *= W::at(factor[r], l);
        W::at(moved, l) = W::at(moved, l) || higher;
      });
    }
    if (!W::any(moved)) return;
    each_number<W, C::mi, columns>([&](int i, int d, int e, int l) {
      int const r = 2 * i + e / 2;
      float& x = W::at(o[i][d][e], l);
      if constexpr (facts::range) {
        float& y = W::at(second[i][d][e], l);
        if (W::at(rise[r], l) > 0) y = (x == 0.f && y == 0.f) ? 0.f : (y - W::at(rise[r], l) * x) * W::at(factor[r], l);
      }
      x *= W::at(factor[r], l);
    });
  }
  /// Writes what the rows are: out, lse and ground weight, and what a backward pass needs.
  ATTUNE_LANE void finish(tile const& rows) {
    auto const& c = rows.call;
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      auto const plus = [](float a, float b) { return a + b; };
      A const mass = over_four<W>(earned[r], plus);
      A below = W::each_lane([](int) { return 0.f; }), least = below;
      if constexpr (is.ground_mass) below = over_four<W>(ground[r], plus);
      if constexpr (facts::range) least = over_four<W>(lowest[r], [](float a, float b) { return b < a ? b : a; });
      W::for_lanes([&](int l) {
        if (rows.row_in_group(r, l) >= c.rows) return;
        group_row const at = rows.row_of(r, l);
        row_record<Op> const& mine = rows.record(at);
        float const m = reference_of(mine, r, l);
        if (c.saved.reference != nullptr) save(rows, at, r, l, m, W::at(mass, l), W::at(below, l), W::at(least, l));
        [[maybe_unused]] float factor, of_second = 0, above = 0, weight = 0, lse;
        if constexpr (facts::range) {
          auto const done = finish_adjusted(mine.bound.normalizer, m, W::at(mass, l), W::at(least, l), m);
          factor = done.value_factor;
          above = m - done.low;
          lse = done.lse;
        } else {
          auto const done =
              finish_masses<normalizer>(mine.bound.normalizer, m, W::at(mass, l), W::at(below, l), mine.visible);
          factor = done.value_factor;
          of_second = done.share;
          weight = done.ground_weight;
          lse = done.lse;
        }
        ATTUNE_UNROLL
        for (int d = 0; d < columns; ++d) {
          int const column = 8 * d + 2 * (l & 3);
          if (column >= c.p.value_width) break;
          float pair[2];
          ATTUNE_UNROLL
          for (int e = 0; e < 2; ++e) {
            float x = W::at(o[r / 2][d][2 * (r % 2) + e], l);
            if constexpr (facts::range)
              x = (W::at(second[r / 2][d][2 * (r % 2) + e], l) + above * x) * factor;
            else if constexpr (facts::second)
              x = x * factor + W::at(second[r / 2][d][2 * (r % 2) + e], l) * of_second;
            else
              x = x * factor;
            pair[e] = x;
            if (Op::uses(field::v0) || Op::has_output_gate)
              if (column + e < c.p.value_width)
                pair[e] = attune::detail::finished_element<float>(c.in, c.p, mine.bound, x, weight, rows.block.batch,
                                                                  at.head, at.query, column + e);
          }
          E* const to = c.to.out.row(rows.block.batch, at.head, at.query) + column * c.to.out.steps().feature;
          if (c.stores_pairs) {
            store_two(to, pair[0], pair[1]);
          } else {
            to[0] = E(pair[0]);
            if (column + 1 < c.p.value_width) to[c.to.out.steps().feature] = E(pair[1]);
          }
        }
        if ((l & 3) != 0) return;
        if constexpr (Op::has_lse)
          if (!c.to.lse.values.absent())
            c.to.lse.values(rows.block.batch, at.head, at.query, 0) = lse + mine.bound.logit_shift;
        if constexpr (Op::has_ground_weight)
          if (!c.to.ground_weight.absent()) c.to.ground_weight(rows.block.batch, at.head, at.query, 0) = weight;
      });
    }
  }

 private:
  ATTUNE_LANE static float first_gap(row_record<Op> const& x) { return (x.level - x.reference) * approximate::log2e; }
  ATTUNE_LANE float reference_of([[maybe_unused]] row_record<Op> const& mine, int r, int l) const {
    if constexpr (facts::affine) {
      float const x = W::at(gap[r], l);
      return x == first_gap(mine) ? mine.reference : mine.level - x * approximate::ln2;
    } else {
      return W::at(reference[r], l);
    }
  }
  /// The state of a row, as exec/states.hpp lays it out.
  ATTUNE_LANE void save(tile const& rows, group_row const& at, int r, int l, float m, float mass, float below,
                        float least) const {
    auto const& to = rows.call.saved;
    index_t const n = rows.row_number(at), width = rows.call.p.value_width;
    ATTUNE_UNROLL
    for (int d = 0; d < columns; ++d) {
      ATTUNE_UNROLL
      for (int e = 0; e < 2; ++e) {
        int const column = 8 * d + 2 * (l & 3) + e;
        if (column >= width) continue;
        to.acc[n * width + column] = W::at(o[r / 2][d][2 * (r % 2) + e], l);
        if constexpr (facts::second) to.second[n * width + column] = W::at(second[r / 2][d][2 * (r % 2) + e], l);
      }
    }
    if ((l & 3) != 0) return;
    to.reference[n] = m;
    to.earned[n] = mass;
    to.ground[n] = below;
    to.lowest[n] = least;
  }
};

}  // namespace attune::exec_cuda
