// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   saved rows and cotangents  ->  pair_record of each row
//
// The programs of a VJP that run before its tiles. The rules of a row are in exec/row_slopes.hpp.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
#include <attune/exec/row_slopes.hpp>
#include <attune/exec/terms.hpp>

namespace attune::exec_cuda {

/// The record of row n. Rows past the last of a group see no key and have no mass.
/// Complexity: Dv for each row, 2 Dv with a uniform share.
template <class Op, class E>
struct row_slopes_program {
  using facts = gradient_facts<Op>;
  using normalizer = typename Op::normalizer_policy;
  gradient_call<Op, E> c;

  ATTUNE_HD index_t tasks() const {
    return c.forward.p.batch * c.forward.groups * (index_t(c.row_tiles) * c.rows_each);
  }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const padded = index_t(c.row_tiles) * c.rows_each, b = task / (padded * c.forward.groups);
    int const n = int(task % padded), group = int(task / padded % c.forward.groups);
    bool const exists = n < c.forward.rows;
    group_row const at(exists ? n : c.forward.rows - 1, group, c.forward.pack);
    row_record<Op> const& mine = c.forward.records[c.forward.row_number(b, at.head, at.query)];
    pair_record<Op>& to = c.pairs[task];
    to = {};
    __builtin_memcpy(to.bound, &mine.bound, sizeof mine.bound);
    to.gap = -attune::detail::limits<float>::infinity;
    to.reference = mine.reference;
    if constexpr (tile_format<E>::split) write_factors(task, b, at, exists);
    if (!exists) return;
    to.first = mine.first;
    to.last = mine.last;
    slopes(to, mine, b, at);
  }

 private:
  ATTUNE_HD void write_factors(index_t task, index_t b, group_row const& at, bool exists) const {
    constexpr int products = facts::is::products;
    index_t const n = task % c.rows_each;
    float* const to = c.row_factors + (task - n) * (products + 1) + split_operand::place(n);
    for (int k = 0; k < products; ++k)
      to[k * c.rows_each] = exists ? c.forward.query[k].factors_of(b, at.head)[split_operand::place(at.query)] : 1.f;
    to[products * c.rows_each] = exists ? c.factor_of_d_out(b, at) : 1.f;
  }
  ATTUNE_HD void slopes(pair_record<Op>& to, row_record<Op> const& mine, index_t b, group_row const& at) const {
    constexpr int parameters = parameter_count<Op>;
    using D = dual<float, 2 + parameters>;  // earned and ground mass, parameters
    auto const& p = c.forward.p;
    index_t const n = c.forward.row_number(b, at.head, at.query);
    attune::detail::row_gains<float> gains{0, 0, 0, number(c.d_lse, b, at)};
    if constexpr (Op::has_ground_weight) gains.ground_gain = number(c.d_ground, b, at);
    for (index_t d = 0; d < p.value_width && !c.d_out.absent(); ++d) {
      float const by = float(c.d_out(b, at.head, at.query, d));
      gains.value_sum = approximate::fma(by, c.saved.acc[n * p.value_width + d], gains.value_sum);
      if constexpr (facts::is::second)
        gains.plain_sum = approximate::fma(by, c.saved.second[n * p.value_width + d], gains.plain_sum);
      if constexpr (Op::uses(field::v0))
        gains.ground_gain += by * attune::detail::shared_element<float>(c.forward.in.v0, b, at.head, at.query, d);
    }
    float const m = c.saved.reference[n];
    auto const facts_of_row = attune::detail::row_of_count<float>(p, index_t(mine.visible), b, at.head, at.query);
    auto const moving = lifted(facts_of_row, lift<D>{{}, {0, parameters, 2}});
    auto const f = c.forward.op.bind(moving);
    auto const s = attune::detail::slopes_of_masses<Op>(f.normalizer, m, c.saved.earned[n], c.saved.ground[n],
                                                        moving.visible, f.logit_shift, gains);
    auto const pair = s.pair();
    if (c.ends != nullptr) c.ends[n] = {s.done.value_factor.value, s.done.share.value, s.done.ground_weight.value};
    if (c.by_parameter != nullptr)
      for (int k = 0; k < parameters; ++k) c.by_parameter[n * parameters + k] = s.by[2 + k];
    to.factor = pair.factor;
    to.share = pair.share;
    to.by_earned = pair.by_earned;
    to.by_ground = pair.d_ground_weight;
    float const none = pair.factor - pair.factor;  // NaN in a row of NaN: every key gets it
    to.reference = none == none ? m : none;
    to.slope = facts::affine ? mine.slope : 1.f;
    to.scale = to.slope * approximate::log2e;
    to.gap = ((facts::affine ? mine.level : 0.f) - to.reference) * approximate::log2e;
    if constexpr (facts::is::fills) {
      float const level = mine.bound.normalizer.lowest_reference();
      to.unit = level == attune::detail::limits<float>::infinity ? 1.f : ::exp2f((level - m) * approximate::log2e);
    }
  }
  ATTUNE_HD static float number(tensor<float const> const& x, index_t b, group_row const& at) {
    return x.absent() ? 0.f : x(b, at.head, at.query, 0);
  }
};

/// Marks the tiles whose rows have an infinity, because a slope of 0 times an infinity has to be 0. NaN needs no mark:
/// a row that sees it is NaN. Task: a row.
template <class E>
struct infinite_tiles_program {
  operand rows;
  index_t batch, positions;
  int pack, each, tiles;  ///< heads of a group, or 1 for keys; rows of a tile; tiles
  int* found;             ///< B, tiles
  ATTUNE_HD index_t tasks() const { return batch * rows.heads * positions; }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const n = task % positions, h = task / positions % rows.heads, b = task / (positions * rows.heads);
    E const* const x = reinterpret_cast<E const*>(rows.rows(b, h) + n * rows.position);
    constexpr unsigned infinity = std::is_same_v<E, bfloat16> ? 0x7f80u : 0x7c00u;
    bool infinite = false;
    for (int d = 0; d < 8 * rows.chunks; ++d) infinite = infinite || (x[d].bits & 0x7fffu) == infinity;
    if (infinite) found[b * tiles + (n * pack + h % pack) / each] = 1;
  }
};

/// The hulls of the keys that the rows of tile n see, of interval masks.
template <class Op, class E>
struct tile_hull_program {
  gradient_call<Op, E> c;
  ATTUNE_HD index_t tasks() const { return c.forward.p.batch * c.forward.groups * c.row_tiles; }
  ATTUNE_HD void operator()(index_t n) const {
    int const keys = int(c.forward.p.keys);
    tile_hull x{keys, 0, 0, keys};
    for (int r = 0; r < c.rows_each; ++r) {
      pair_record<Op> const& row = c.pairs[n * c.rows_each + r];
      if (row.first >= row.last) {
        x.full_last = 0;
        continue;
      }
      x.first = row.first < x.first ? row.first : x.first;
      x.last = row.last > x.last ? row.last : x.last;
      x.full_first = row.first > x.full_first ? row.first : x.full_first;
      x.full_last = row.last < x.full_last ? row.last : x.full_last;
    }
    c.hulls[n] = x;
  }
};
/// The tiles of rows that tile n of keys needs.
template <class Op, class E>
struct row_range_program {
  gradient_call<Op, E> c;
  ATTUNE_HD index_t tasks() const { return c.forward.p.batch * c.forward.groups * c.key_tiles; }
  ATTUNE_HD void operator()(index_t n) const {
    int const tile = int(n % c.key_tiles), group = int(n / c.key_tiles % c.forward.groups);
    index_t const b = n / (index_t(c.key_tiles) * c.forward.groups);
    row_range to{0, 0};
    for (int t = 0; t < c.row_tiles; ++t) {
      if (c.class_of((b * c.forward.groups + group) * c.row_tiles + t, t, tile) == 0) continue;
      if (to.until == 0) to.from = t;
      to.until = t + 1;
    }
    c.ranges[n] = to;
  }
};

}  // namespace attune::exec_cuda
