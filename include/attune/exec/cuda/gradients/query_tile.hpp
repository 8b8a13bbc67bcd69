// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dq_i = sum_j dx_ij k_j,   S = Q K^T,   H = dO V^T
//
// The warps of a block own 16 MI queries each and stream the keys that these see, as forward_tile does. Three products;
// no two blocks share a sum. One source for devices and for emulated warps. Whatever belongs to a query or to a pair is
// computed here: gradients by members of bound policies, by numbers of queries and by numbers of pairs.
#pragma once

#include <attune/exec/cuda/gradients/config.hpp>
#include <attune/exec/cuda/gradients/pair_rule.hpp>
#include <attune/exec/cuda/gradients/products.hpp>
#include <attune/exec/cuda/tile/tile_rows.hpp>

namespace attune::exec_cuda {

/// A warp's part of a tile of queries: gradients by the queries of every product, in registers. Members: the sums of
/// member_sums<Op>, too.
template <class W, class Op, class E, class C, bool Members = false>
class query_gradient_tile {
  template <class T>
  using of = typename W::template of<T>;
  using A = of<float>;
  using memory = tile_memory<Op, E, C>;
  using own_memory = query_tile_memory<Op, E, C>;
  using staged = stage<W, C>;
  using engine = gradient_products<W, E, C, memory>;
  using F = typename tile_format<E>::scalar;
  using facts = gradient_facts<Op, F>;
  using tile = tile_rows<W, Op, E, C>;
  using call_type = gradient_call<Op, E>;
  static constexpr int R = tile::R, blocks = C::bn / 8, columns = C::width / 8 / C::parts, count = call_type::products;
  static constexpr int members = Members ? member_sums<Op>::size : 0, sums = members + call_type::query_numbers;

  call_type const& call_;
  tile rows_;
  A dq_[count][C::mi][columns][4], sum_[sums + 1][R];  // sums: by members, then by numbers of queries
  of<pair_numbers<Op, F>> row_[R];
  typename engine::factors of_query_[count], of_d_out_;

 public:
  static constexpr int shared_bytes = own_memory::bytes;

  ATTUNE_LANE query_gradient_tile(call_type const& c, typename W::shared sm, int warp, block_place at)
      : call_(c), rows_(c.forward, sm, warp, at) {}

  ATTUNE_LANE void run() {
    rows_.fetch_queries();
    rows_.fetch_own(own_memory::d_out, call_.d_rows);
    rows_.locate();
    tile_plan const plan = rows_.make_plan();
    int const total = plan.partial + plan.full;
    if (total > 0) rows_.template fetch<false>(rows_.template key_tile<false>(plan, 0), 0);
    W::commit();
    start();
    ATTUNE_ROLLED
    for (int n = 0; n < total; ++n) {
      if (n < plan.partial || call_.has_infinite_key(rows_.block.batch, number(plan, n)))
        step<true>(plan, n, total);
      else
        step<false>(plan, n, total);
    }
    finish();
  }

 private:
  /// Of the part of the features that the warp has the sums of.
  ATTUNE_LANE int first_feature() const { return rows_.warp % C::parts * (8 * columns); }
  ATTUNE_LANE pair_record<Op> const& record(int r, int l) const {
    int const n = rows_.row_in_group(r, l), last = call_.forward.rows - 1;
    return call_.pairs[call_.pair_number(rows_.block.batch, rows_.block.group, n < last ? n : last)];
  }
  ATTUNE_LANE void start() {
    if constexpr (engine::split) {
      ATTUNE_UNROLL
      for (int k = 0; k < facts::is::products; ++k)
        engine::set(of_query_[k], [&](int r, int l) {
          group_row const at = rows_.row_of(r, l);
          return call_.forward.query[k].factors_of(rows_.block.batch, at.head)[split_operand::place(at.query)];
        });
      engine::set(of_d_out_,
                  [&](int r, int l) { return call_.factor_of_d_out(rows_.block.batch, rows_.row_of(r, l)); });
    }
    each_row<W, R>([&](int r, int l) {
      pair_record<Op> const& x = record(r, l);
      pair_numbers<Op, F>& to = W::at(row_[r], l);
      to.scale = x.scale, to.gap = x.gap, to.factor = x.factor, to.by_earned = x.by_earned;
      to.reference = x.reference, to.unit = x.unit, to.share = x.share, to.by_ground = x.by_ground;
      if constexpr (!facts::affine) __builtin_memcpy(static_cast<void*>(&to.f), x.bound, sizeof to.f);
    });
    ATTUNE_UNROLL
    for (int k = 0; k < count; ++k)
      each_number<W, C::mi, columns>([&](int i, int d, int e, int l) { W::at(dq_[k][i][d][e], l) = 0.f; });
    ATTUNE_UNROLL
    for (int k = 0; k < sums; ++k) each_row<W, R>([&](int r, int l) { W::at(sum_[k][r], l) = 0.f; });
  }
  /// The number of a tile of keys, partial or full.
  ATTUNE_LANE int number(tile_plan const& plan, int n) const { return rows_.template key_tile<false>(plan, n); }
  template <bool Partial>
  ATTUNE_LANE void step(tile_plan const& plan, int n, int total) {
    int const slot = n & 1, t = number(plan, n);
    W::template wait<0>();
    bool infinite = false;
    if constexpr (Partial && !engine::split) {
      of<bool> found = W::each_lane([](int) { return false; });
      ATTUNE_UNROLL
      for (int k = 0; k < facts::is::products; ++k) {
        of<bool> const more = staged::template any_infinite<E, C::bn>(rows_.shared, memory::key(k, slot), rows_.warp);
        W::for_lanes([&](int l) { W::at(found, l) = W::at(found, l) || W::at(more, l); });
      }
      infinite = W::sync_or(found);
    } else {
      W::sync();  // this tile is there, and no warp reads the other slot any more
    }
    if (n + 1 < total) rows_.template fetch<!Partial>(number(plan, n + 1), slot ^ 1);
    W::commit();
    absorb<Partial>(t, slot, infinite);
  }

  template <bool Partial>
  ATTUNE_LANE void absorb(int t, int slot, bool infinite) {
    A s[count][C::mi][blocks][4], h[C::mi][blocks][4];
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k)
      engine::template scores<(facts::is::products > 1)>(s[k], rows_.shared, rows_.own(), memory::query(k),
                                                         of_query_[k], memory::key(k, slot),
                                                         memory::key_factors(k, slot), call_.forward.key[k].chunks);
    engine::template scores<false>(h, rows_.shared, rows_.own(), own_memory::d_out, of_d_out_, memory::value(slot),
                                   memory::value_factors(slot), call_.forward.value.chunks);
    of<std::uint32_t> seen[R];
    if constexpr (Partial) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) seen[r] = rows_.seen_keys(t, r);
    }
    each_number<W, C::mi, blocks>([&](int i, int n, int e, int l) {
      int const r = 2 * i + e / 2, j = t * C::bn + 8 * n + 2 * (l & 3) + e % 2;
      bool const visible = !Partial || (W::at(seen[r], l) >> (2 * n + e % 2) & 1u) != 0;
      F x[facts::contractions + 1];
      rows_.contract(x, [&](int k) { return W::at(s[k][i][n][e], l); }, r, j, l);
      F u = 0;
      if constexpr (attune::detail::draws_numbers<Op>) {
        group_row const at = rows_.row_of(r, l);
        u = attune::detail::drawn_number(call_.forward.op, call_.forward.p, rows_.block.batch, at.head, at.query, j);
      }
      auto const pulled = pull_pair<Op, Members>(W::at(row_[r], l), x, j, W::at(h[i][n][e], l), u, [&](int m, F by) {
        W::at(sum_[m][r], l) += visible ? float(by) : 0.f;
      });
      for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto number, auto place) {
        using chosen = decltype(contraction);
        constexpr int c = decltype(number)::value, k = decltype(place)::value;
        float const by = visible ? pulled.by[c] : 0.f;
        if constexpr (k >= 0) W::at(s[k][i][n][e], l) = by;
        if constexpr (is_number_of<operand_side::query, chosen>)
          W::at(sum_[members + numbers_before<operand_side::query, c>(typename Op::contractions{})][r], l) +=
              by * number_slope<operand_side::query, chosen>;
        if constexpr (is_number_of<operand_side::pair, chosen>) {
          auto const& to = call_.by_pair[numbers_before<operand_side::pair, c>(typename Op::contractions{})];
          if (to.wanted() && visible && first_feature() == 0 && rows_.row_in_group(r, l) < call_.forward.rows &&
              j < call_.forward.p.keys) {
            group_row const at = rows_.row_of(r, l);
            to.put(rows_.block.batch, at.head, at.query, j, by);
          }
        }
      });
    });
    ATTUNE_UNROLL
    for (int k = 0; k < facts::is::products; ++k)
      engine::template add<Partial>(dq_[k], s[k], seen, rows_.shared, memory::key(k, slot) + 2 * first_feature(),
                                    memory::key_factors(k, slot), infinite);
  }

  ATTUNE_LANE void finish() {
    ATTUNE_UNROLL
    for (int k = 0; k < sums; ++k) {
      ATTUNE_UNROLL
      for (int r = 0; r < R; ++r) sum_[k][r] = over_four<W>(sum_[k][r], [](float a, float b) { return a + b; });
    }
    ATTUNE_UNROLL
    for (int r = 0; r < R; ++r)
      W::for_lanes([&](int l) {
        if (rows_.row_in_group(r, l) >= call_.forward.rows) return;
        group_row const at = rows_.row_of(r, l);
        if ((l & 3) == 0 && first_feature() == 0) {
          ATTUNE_UNROLL
          for (int m = 0; m < members; ++m) call_.by_member[rows_.row_number(at) * members + m] = W::at(sum_[m][r], l);
          ATTUNE_UNROLL
          for (int k = 0; k < call_type::query_numbers; ++k)
            if (call_.by_query_number[k].wanted())
              call_.by_query_number[k].put(rows_.block.batch, at.head, at.query, 0, W::at(sum_[members + k][r], l),
                                           0.f);
        }
        float by = 1;
        if constexpr (facts::affine) by = record(r, l).slope;
        ATTUNE_UNROLL
        for (int k = 0; k < facts::is::products; ++k) {
          if (!call_.by_query[k].wanted()) continue;
          call_.by_query[k].template put_pairs<columns>(
              rows_.block.batch, at.head, at.query, first_feature() + 2 * (l & 3),
              [&](int d, int e) { return W::at(dq_[k][r / 2][d][2 * (r % 2) + e], l) * by; });
        }
      });
  }
};

}  // namespace attune::exec_cuda
