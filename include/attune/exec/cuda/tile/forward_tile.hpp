// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The recurrence of operators/row_state.hpp on tiles: the warps of a block stream the keys of 16 MI rows each. One
// source for devices and for emulated warps.
#pragma once

#include <attune/exec/cuda/tile/products.hpp>
#include <attune/exec/cuda/tile/row_sums.hpp>
#include <attune/exec/cuda/tile/split_products.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cuda {

/// A warp's part of a tile of rows: value sums and numbers of 16 MI rows in registers.
template <class W, class Op, class E, class C>
class forward_tile : row_sums<W, Op, E, C> {
  using base = row_sums<W, Op, E, C>;
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using format = tile_format<E>;
  using F = typename format::scalar;
  using memory = tile_memory<Op, E, C>;
  using staged = stage<W, C>;
  using engine = products<W, typename format::number, C>;
  using split_engine = split_products<W, C, memory>;
  using base::at_, base::c_, base::sm_, base::warp_;
  using base::earned_, base::f_, base::gap_, base::ground_, base::level_, base::lowest_, base::o_, base::reference_,
      base::scale_, base::second_;
  using base::locate, base::make_plan, base::quad, base::row_of, base::seen_keys, base::smallest;
  using base::R, base::columns, base::is, base::needs_level;
  using typename base::facts;
  static constexpr int blocks = C::bn / 8;
  static constexpr bool split = format::split;
  /// The ground's mass is computed from the earned one. In fast_float, expm1(x) is e^x - 1: nothing is lost.
  static constexpr bool fills = facts::fills && !split, needs_logits = needs_level && !fills;
  static constexpr bool holds_queries = C::mi == 1 && C::width <= 128 && facts::products > 0 && !split;

  of<std::uint32_t> held_[holds_queries ? C::width / 16 : 1][4];
  split_query_factors<std::conditional_t<split, A, char>> factors_[split && facts::products > 0 ? facts::products : 1];

 public:
  static constexpr int shared_bytes = memory::bytes;

  ATTUNE_LANE forward_tile(forward_call<Op, E> const& c, typename W::shared sm, int warp, block_place at)
      : base(c, sm, warp, at) {}

  ATTUNE_LANE void run() {
    base::fetch_queries();
    locate();
    tile_plan const plan = make_plan();
    int const total = plan.partial + plan.full;
    if (total > 0) base::template fetch<false>(base::template key_tile<false>(plan, 0), 0);
    W::commit();
    [[maybe_unused]] of<bool> const negative = base::start();
    if constexpr (facts::affine)
      if (W::sync_or(negative)) {  // the maximum of a row with a negative slope is found on -s
        W::template wait<0>();
        W::sync();
        int const first = at_.tile * C::rows + warp_ * (16 * C::mi);
        ATTUNE_UNROLL
        for (int part = 0; part < format::planes; ++part)
          staged::negate(sm_, memory::query(0) + part * memory::query_plane + warp_ * (16 * C::mi) * memory::row,
                         [&](int n) {
                           group_row const at(smallest(first + n, c_.rows - 1), at_.group, c_.pack);
                           return c_.records[c_.row_number(at_.batch, at.head, at.query)].slope < 0;
                         });
      }
    if constexpr (split) read_query_factors();
    if constexpr (holds_queries) {
      W::template wait<0>();
      W::sync();
      auto const from = engine::query_address(warp_, memory::query(0));
      ATTUNE_UNROLL
      for (int a = 0; a < C::width / 16; ++a) W::ldmatrix4(held_[a], sm_, engine::moved(from, a, 0), false);
    }
    int n = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (; n < plan.partial; ++n) step<true>(plan, n, total);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (; n < total; ++n) step<false>(plan, n, total);
    base::finish();
  }

 private:
  ATTUNE_LANE void read_query_factors() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r)
        W::for_lanes([&](int l) {
          group_row const at = row_of(r, l);
          split_engine::set(factors_[k], r, l,
                            c_.query[k].factors_of(at_.batch, at.head)[split_operand::place(at.query)]);
        });
    }
  }
  template <bool Partial>
  ATTUNE_LANE void step(tile_plan const& plan, int n, int total) {
    int const slot = n & 1, t = base::template key_tile<!Partial>(plan, n);
    W::template wait<0>();
    bool infinite = false;
    if constexpr (Partial && !split)
      infinite = W::sync_or(staged::template any_infinite<E, C::bn>(sm_, memory::value(slot), warp_));
    else
      W::sync();  // this tile is there, and no warp reads the other slot any more
    if (n + 1 < total) base::template fetch<!Partial>(base::template key_tile<!Partial>(plan, n + 1), slot ^ 1);
    W::commit();
    if constexpr (split) {
      infinite = split_engine::any_infinite(sm_, memory::value_factors(slot));
      if (infinite) {  // add_infinite reads them elsewhere
        staged::template drop_infinite<float16, C::bn>(sm_, memory::value(slot), warp_);
        W::sync();
      }
    }
    absorb<Partial>(t, slot, infinite);
  }

  template <bool Partial>
  ATTUNE_LANE void absorb(int t, int slot, bool infinite) {
    constexpr int count = facts::products == 0 ? 1 : facts::products;
    A s[count][C::mi][blocks][4];
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) {
      if constexpr (split)
        split_engine::template scores<(facts::products > 1)>(s[k], sm_, warp_, memory::query(k), memory::key(k, slot),
                                                             factors_[k], memory::key_factors(k, slot),
                                                             c_.key[k].chunks);
      else if (holds_queries && k == 0)
        engine::template scores<holds_queries, false>(s[k], sm_, warp_, memory::query(k), memory::key(k, slot), held_,
                                                      c_.key[k].chunks);
      else
        engine::template scores<false, (facts::products > 1)>(s[k], sm_, warp_, memory::query(k), memory::key(k, slot),
                                                              held_, c_.key[k].chunks);
    }
    of<std::uint32_t> seen[R];
    if constexpr (Partial) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) seen[r] = seen_keys(t, r);
    }
    auto const sees = [&](int r, int n, int e, int l) {
      return !Partial || (W::at(seen[r], l) >> (2 * n + e % 2) & 1u) != 0;
    };
    constexpr float none = -attune::detail::limits<float>::infinity;

    // Weight gates read their contraction before its place is needed.
    constexpr bool gated = Op::has_weight_gate;
    A gate[gated ? C::mi : 1][gated ? blocks : 1][4];
    A high[R];
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) W::for_lanes([&](int l) { W::at(high[r], l) = none; });
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int n = 0; n < blocks; ++n) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            bool const visible = sees(r, n, e, l);
            float& a = W::at(s[0][i][n][e], l);
            if constexpr (!facts::affine) {
              F x[Op::contractions::size + 1];
              int const j = t * C::bn + 8 * n + 2 * (l & 3) + e % 2;
              base::contract(x, [&](int k) { return W::at(s[k][i][n][e], l); }, r, j, l);
              a = float(W::at(f_[r], l).logit(x, key<F>{F(float(j))}));
              if constexpr (gated) {
                group_row const at = row_of(r, l);
                W::at(gate[i][n][e], l) = float(
                    attune::detail::factor_of_pair(c_.op, W::at(f_[r], l), x, c_.p, at_.batch, at.head, at.query, j));
              }
            }
            if (!visible) a = none;
            if constexpr (facts::online) W::at(high[r], l) = ::fmaxf(W::at(high[r], l), a);  // drops a NaN
            if constexpr (facts::range)
              if (a != none && a < W::at(lowest_[r], l)) W::at(lowest_[r], l) = a;
          });
      }
    }
    if constexpr (facts::online) raise(high);

    // masses
    A sum[R], below[R], m[R], offset[R], unit[fills ? R : 1];  // unit: the mass of a key at the ground's level
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        W::at(sum[r], l) = W::at(below[r], l) = 0.f;
        if constexpr (!facts::affine)
          W::at(m[r], l) = W::at(reference_[r], l);
        else if constexpr (needs_logits)
          W::at(m[r], l) = W::at(level_[r], l) - W::at(gap_[r], l) * approximate::ln2;
        if constexpr (!facts::affine) W::at(offset[r], l) = -W::at(m[r], l) * approximate::log2e;
        if constexpr (fills) {
          float const g = float(W::at(f_[r], l).normalizer.lowest_reference());
          float log_of_unit;
          if constexpr (facts::affine)
            log_of_unit = approximate::fma(g - W::at(level_[r], l), approximate::log2e, W::at(gap_[r], l));
          else
            log_of_unit = approximate::fma(g, approximate::log2e, W::at(offset[r], l));
          // Of a level of +inf, which is the reference then, the mass is 1.
          W::at(unit[r], l) = g == -none ? 1.f : approximate::ex2(log_of_unit);
        }
      });
    A moment[facts::range ? C::mi : 1][facts::range ? blocks : 1][4];
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int n = 0; n < blocks; ++n) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            bool const visible = sees(r, n, e, l);
            float& a = W::at(s[0][i][n][e], l);
            float const raw = a;
            [[maybe_unused]] F logit = raw;
            if constexpr (needs_logits)
              logit = approximate::fma(W::at(scale_[r], l), raw * approximate::ln2, W::at(level_[r], l));
            float w;
            if constexpr (facts::range)
              w = approximate::ex2((raw - W::at(m[r], l)) * approximate::log2e);
            else if constexpr (facts::fused && facts::affine)
              w = approximate::ex2(approximate::fma(raw, W::at(scale_[r], l), W::at(gap_[r], l)));
            else if constexpr (facts::fused)
              w = approximate::ex2(approximate::fma(raw, approximate::log2e, W::at(offset[r], l)));
            else
              w = float(W::at(f_[r], l).normalizer.earned(logit, F(W::at(m[r], l))));
            if constexpr (is.ground_mass) {
              float g;
              if constexpr (fills)
                g = ::fmaxf(W::at(unit[r], l) - w, 0.f);  // 0 where w is NaN; the row is NaN by its earned mass
              else
                g = float(W::at(f_[r], l).normalizer.ground(logit, F(W::at(m[r], l))));
              if (!visible) g = 0.f;
              W::at(below[r], l) += g;
            }
            if (!visible) w = 0.f;
            W::at(sum[r], l) += w;
            if constexpr (facts::range) W::at(moment[i][n][e], l) = raw == none ? 0.f : w * (raw - W::at(m[r], l));
            if constexpr (gated) {
              w *= visible ? W::at(gate[i][n][e], l) : 0.f;
              if constexpr (facts::range) W::at(moment[i][n][e], l) *= visible ? W::at(gate[i][n][e], l) : 0.f;
            }
            a = w;
          });
      }
    }
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        W::at(earned_[r], l) += W::at(sum[r], l);
        if constexpr (is.ground_mass) W::at(ground_[r], l) += W::at(below[r], l);
      });
    add<Partial>(o_, s[0], seen, t, slot, infinite);
    if constexpr (facts::range) {
      add<Partial>(second_, moment, seen, t, slot, infinite);
    } else if constexpr (facts::second) {  // the plain sum of visible values
      ATTUNE_UNROLL
      for (int i = 0; i < C::mi; ++i) {
        ATTUNE_UNROLL
        for (int n = 0; n < blocks; ++n) {
          ATTUNE_UNROLL
          for (int e = 0; e < 4; ++e)
            W::for_lanes([&](int l) {
              float x = sees(2 * i + e / 2, n, e, l) ? 1.f : 0.f;
              if constexpr (gated)
                if (x != 0.f) x = W::at(gate[i][n][e], l);
              W::at(s[0][i][n][e], l) = x;
            });
        }
      }
      add<Partial>(second_, s[0], seen, t, slot, infinite);
    }
  }
  template <bool Partial, class Sums, class Weights>
  ATTUNE_LANE void add(Sums& to, Weights const& w, of<std::uint32_t> const (&seen)[R], [[maybe_unused]] int t, int slot,
                       bool infinite) {
    if constexpr (split) {
      if (infinite) {
        of<std::uint32_t> visible[R];
        ATTUNE_UNROLL
        for (int r = 0; r < R; ++r)
          visible[r] = Partial ? seen[r] : W::each_lane([](int) { return ~std::uint32_t(0); });
        unsigned char const* const from =
            c_.value.rows(at_.batch, base::head_of(c_.value, at_.group * c_.pack)) + t * C::bn * c_.value.position;
        split_engine::add_infinite(to, w, visible, sm_, memory::value_factors(slot), c_.value, from);
      }
      split_engine::add(to, w, sm_, memory::value(slot), memory::value_factors(slot));
    } else {
      if constexpr (Partial) {
        if (infinite) return engine::add_seen(to, w, seen, sm_, memory::value(slot));
      }
      engine::add(to, w, sm_, memory::value(slot));
    }
  }

  /// Makes the masses relative to the new maxima.
  ATTUNE_LANE void raise(A (&high)[R]) {
    A factor[R], rise[R];
    of<bool> moved;
    W::for_lanes([&](int l) { W::at(moved, l) = false; });
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r) {
      A top = quad(high[r], [](float a, float b) { return ::fmaxf(a, b); });
      W::for_lanes([&](int l) {
        bool higher;
        if constexpr (facts::affine) {
          float const gap = -(W::at(scale_[r], l) * W::at(top, l)), by = approximate::ex2(gap - W::at(gap_[r], l));
          higher = gap < W::at(gap_[r], l);
          W::at(factor[r], l) = higher ? by : 1.f;
          if (higher) W::at(gap_[r], l) = gap;
        } else {
          float const x = W::at(top, l), m = W::at(reference_[r], l);
          higher = m < x;
          W::at(factor[r], l) = higher ? approximate::ex2((m - x) * approximate::log2e) : 1.f;
          W::at(rise[r], l) = higher ? x - m : 0.f;
          if (higher) W::at(reference_[r], l) = x;
        }
        W::at(earned_[r], l) *= W::at(factor[r], l);
        if constexpr (is.ground_mass) W::at(ground_[r], l) *= W::at(factor[r], l);
        W::at(moved, l) = W::at(moved, l) || higher;
      });
    }
    if (!W::any(moved)) return;
    ATTUNE_UNROLL
    for (int i = 0; i < C::mi; ++i) {
      ATTUNE_UNROLL
      for (int d = 0; d < columns; ++d) {
        ATTUNE_UNROLL
        for (int e = 0; e < 4; ++e)
          W::for_lanes([&](int l) {
            int const r = 2 * i + e / 2;
            float& x = W::at(o_[i][d][e], l);
            if constexpr (facts::range) {
              float& y = W::at(second_[i][d][e], l);
              if (W::at(rise[r], l) > 0)
                y = (x == 0.f && y == 0.f) ? 0.f : (y - W::at(rise[r], l) * x) * W::at(factor[r], l);
            }
            x *= W::at(factor[r], l);
          });
      }
    }
  }
};

}  // namespace attune::exec_cuda
