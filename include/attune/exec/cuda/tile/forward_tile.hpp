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
class forward_tile {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using format = tile_format<E>;
  using F = typename format::scalar;
  using memory = tile_memory<Op, E, C>;
  using staged = stage<W, C>;
  using engine = products<W, typename format::number, C>;
  using split_engine = split_products<W, C, memory>;
  using facts = tile_facts<Op>;
  using tile = tile_rows<W, Op, E, C>;
  using sums = row_sums<W, Op, E, C>;
  static constexpr int R = tile::R, blocks = C::bn / 8;
  static constexpr bool split = format::split;
  /// The ground's mass is computed from the earned one. In fast_float, expm1(x) is e^x - 1: nothing is lost.
  static constexpr bool fills = facts::fills && !split, needs_logits = sums::needs_level && !fills;
  /// Weights may be of any size, and fp16 has numbers from 6e-8 to 65,504 only.
  static constexpr bool scaled = !facts::online && std::is_same_v<E, float16>;
  static constexpr bool holds_queries = C::mi == 1 && C::width <= 128 && facts::products > 0 && !split;

  tile rows_;
  sums sums_;
  of<std::uint32_t> held_[holds_queries ? C::width / 16 : 1][4];
  split_query_factors<std::conditional_t<split, A, char>> factors_[split && facts::products > 0 ? facts::products : 1];

 public:
  static constexpr int shared_bytes = memory::bytes;

  ATTUNE_LANE forward_tile(forward_call<Op, E> const& c, typename W::shared sm, int warp, block_place at)
      : rows_(c, sm, warp, at) {}

  ATTUNE_LANE void run() {
    rows_.fetch_queries();
    rows_.locate();
    tile_plan const plan = rows_.make_plan();
    int const total = plan.partial + plan.full;
    if (total > 0) rows_.template fetch<false>(rows_.template key_tile<false>(plan, 0), 0);
    W::commit();
    [[maybe_unused]] of<bool> const negative = sums_.start(rows_);
    if constexpr (facts::affine)
      if (W::sync_or(negative)) {  // the maximum of a row with a negative slope is found on -s
        W::template wait<0>();
        W::sync();
        int const first = rows_.block.tile * C::rows + rows_.warp * (16 * C::mi);
        ATTUNE_UNROLL
        for (int part = 0; part < format::planes; ++part)
          staged::negate(
              rows_.shared, memory::query(0) + part * memory::query_plane + rows_.warp * (16 * C::mi) * memory::row,
              [&](int n) {
                return rows_
                           .record({tile::smallest(first + n, rows_.call.rows - 1), rows_.block.group, rows_.call.pack})
                           .slope < 0;
              });
      }
    if constexpr (split) read_query_factors();
    if constexpr (holds_queries) {
      W::template wait<0>();
      W::sync();
      auto const from = engine::query_address(rows_.warp, memory::query(0));
      ATTUNE_UNROLL
      for (int a = 0; a < C::width / 16; ++a) W::ldmatrix4(held_[a], rows_.shared, engine::moved(from, a, 0), false);
    }
    int n = 0;
    ATTUNE_ROLLED
    for (; n < plan.partial; ++n) step<true>(plan, n, total);
    ATTUNE_ROLLED
    for (; n < total; ++n) step<false>(plan, n, total);
    sums_.finish(rows_);
  }

 private:
  ATTUNE_LANE void read_query_factors() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) {
      each_row<W, R>([&](int r, int l) {
        group_row const at = rows_.row_of(r, l);
        split_engine::set(factors_[k], r, l,
                          rows_.call.query[k].factors_of(rows_.block.batch, at.head)[split_operand::place(at.query)]);
      });
    }
  }
  template <bool Partial>
  ATTUNE_LANE void step(tile_plan const& plan, int n, int total) {
    int const slot = n & 1, t = rows_.template key_tile<!Partial>(plan, n);
    W::template wait<0>();
    bool infinite = false;
    if constexpr (Partial && !split)
      infinite = W::sync_or(staged::template any_infinite<E, C::bn>(rows_.shared, memory::value(slot), rows_.warp));
    else
      W::sync();  // this tile is there, and no warp reads the other slot any more
    if (n + 1 < total) rows_.template fetch<!Partial>(rows_.template key_tile<!Partial>(plan, n + 1), slot ^ 1);
    W::commit();
    if constexpr (split) {
      infinite = split_engine::any_infinite(rows_.shared, memory::value_factors(slot));
      if (infinite) {  // add_infinite reads them elsewhere
        staged::template drop_infinite<float16, C::bn>(rows_.shared, memory::value(slot), rows_.warp);
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
        split_engine::template scores<(facts::products > 1)>(s[k], rows_.shared, rows_.warp, memory::query(k),
                                                             memory::key(k, slot), factors_[k],
                                                             memory::key_factors(k, slot), rows_.call.key[k].chunks);
      else if (holds_queries && k == 0)
        engine::template scores<holds_queries, false>(s[k], rows_.shared, rows_.warp, memory::query(k),
                                                      memory::key(k, slot), held_, rows_.call.key[k].chunks);
      else
        engine::template scores<false, (facts::products > 1)>(s[k], rows_.shared, rows_.warp, memory::query(k),
                                                              memory::key(k, slot), held_, rows_.call.key[k].chunks);
    }
    of<std::uint32_t> seen[R];
    if constexpr (Partial) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) seen[r] = rows_.seen_keys(t, r);
    }
    auto const sees = [&](int r, int n, int e, int l) {
      return !Partial || (W::at(seen[r], l) >> (2 * n + e % 2) & 1u) != 0;
    };
    constexpr float none = -attune::detail::limits<float>::infinity;

    // Weight gates read their contraction before its place is needed.
    constexpr bool gated = Op::has_weight_gate;
    A gate[gated ? C::mi : 1][gated ? blocks : 1][4];
    A high[R];
    each_row<W, R>([&](int r, int l) { W::at(high[r], l) = none; });
    each_number<W, C::mi, blocks>([&](int i, int n, int e, int l) {
      int const r = 2 * i + e / 2;
      bool const visible = sees(r, n, e, l);
      float& a = W::at(s[0][i][n][e], l);
      if constexpr (!facts::affine) {
        F x[Op::contractions::size + 1];
        int const j = t * C::bn + 8 * n + 2 * (l & 3) + e % 2;
        rows_.contract(x, [&](int k) { return W::at(s[k][i][n][e], l); }, r, j, l);
        a = float(W::at(sums_.f[r], l).logit(x, key<F>{F(float(j))}));
        if constexpr (gated) {
          group_row const at = rows_.row_of(r, l);
          W::at(gate[i][n][e], l) = float(attune::detail::factor_of_pair(
              rows_.call.op, W::at(sums_.f[r], l), x, rows_.call.p, rows_.block.batch, at.head, at.query, j));
        }
      }
      if (!visible) a = none;
      if constexpr (facts::online) W::at(high[r], l) = ::fmaxf(W::at(high[r], l), a);  // drops a NaN
      if constexpr (facts::range)
        if (a != none && a < W::at(sums_.lowest[r], l)) W::at(sums_.lowest[r], l) = a;
    });
    if constexpr (facts::online) sums_.raise(high);

    // masses
    A sum[R], below[R], m[R], offset[R], unit[fills ? R : 1];  // unit: the mass of a key at the ground's level
    each_row<W, R>([&](int r, int l) {
      W::at(sum[r], l) = W::at(below[r], l) = 0.f;
      if constexpr (!facts::affine)
        W::at(m[r], l) = W::at(sums_.reference[r], l);
      else if constexpr (needs_logits)
        W::at(m[r], l) = W::at(sums_.level[r], l) - W::at(sums_.gap[r], l) * approximate::ln2;
      if constexpr (!facts::affine) W::at(offset[r], l) = -W::at(m[r], l) * approximate::log2e;
      if constexpr (fills) {
        float const g = float(W::at(sums_.f[r], l).normalizer.lowest_reference());
        float log_of_unit;
        if constexpr (facts::affine)
          log_of_unit = approximate::fma(g - W::at(sums_.level[r], l), approximate::log2e, W::at(sums_.gap[r], l));
        else
          log_of_unit = approximate::fma(g, approximate::log2e, W::at(offset[r], l));
        // Of a level of +inf, which is the reference then, the mass is 1.
        W::at(unit[r], l) = g == -none ? 1.f : approximate::ex2(log_of_unit);
      }
    });
    A moment[facts::range ? C::mi : 1][facts::range ? blocks : 1][4];
    each_number<W, C::mi, blocks>([&](int i, int n, int e, int l) {
      int const r = 2 * i + e / 2;
      bool const visible = sees(r, n, e, l);
      float& a = W::at(s[0][i][n][e], l);
      float const raw = a;
      [[maybe_unused]] F logit = raw;
      if constexpr (needs_logits)
        logit = approximate::fma(W::at(sums_.scale[r], l), raw * approximate::ln2, W::at(sums_.level[r], l));
      float w;
      if constexpr (facts::range)
        w = approximate::ex2((raw - W::at(m[r], l)) * approximate::log2e);
      else if constexpr (facts::fused && facts::affine)
        w = approximate::ex2(approximate::fma(raw, W::at(sums_.scale[r], l), W::at(sums_.gap[r], l)));
      else if constexpr (facts::fused)
        w = approximate::ex2(approximate::fma(raw, approximate::log2e, W::at(offset[r], l)));
      else
        w = float(W::at(sums_.f[r], l).normalizer.earned(logit, F(W::at(m[r], l))));
      if constexpr (facts::is.ground_mass) {
        float g;
        if constexpr (fills)
          g = ::fmaxf(W::at(unit[r], l) - w, 0.f);  // 0 where w is NaN; the row is NaN by its earned mass
        else
          g = float(W::at(sums_.f[r], l).normalizer.ground(logit, F(W::at(m[r], l))));
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
    each_row<W, R>([&](int r, int l) {
      W::at(sums_.earned[r], l) += W::at(sum[r], l);
      if constexpr (facts::is.ground_mass) W::at(sums_.ground[r], l) += W::at(below[r], l);
    });
    add<Partial>(sums_.o, s[0], seen, t, slot, infinite);
    if constexpr (facts::range) {
      add<Partial>(sums_.second, moment, seen, t, slot, infinite);
    } else if constexpr (facts::second) {  // the plain sum of visible values
      each_number<W, C::mi, blocks>([&](int i, int n, int e, int l) {
        float x = sees(2 * i + e / 2, n, e, l) ? 1.f : 0.f;
        if constexpr (gated)
          if (x != 0.f) x = W::at(gate[i][n][e], l);
        W::at(s[0][i][n][e], l) = x;
      });
      add<Partial>(sums_.second, s[0], seen, t, slot, infinite);
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
        auto const& values = rows_.call.value;
        split_engine::add_infinite(to, w, visible, rows_.shared, memory::value_factors(slot), values,
                                   rows_.rows_of(values) + t * C::bn * values.position);
      }
      split_engine::add(to, w, rows_.shared, memory::value(slot), memory::value_factors(slot));
    } else {
      if constexpr (Partial) {
        if (infinite) return engine::add_seen(to, w, seen, rows_.shared, memory::value(slot));
      }
      if constexpr (scaled)
        engine::add_scaled(to, w, rows_.shared, memory::value(slot));
      else
        engine::add(to, w, rows_.shared, memory::value(slot));
    }
  }
};

}  // namespace attune::exec_cuda
