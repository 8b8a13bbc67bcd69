// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Programs that run before the tiles: they bind rows and list the tiles of keys that a tile of rows needs.
#pragma once

#include <attune/exec/cuda/call.hpp>

namespace attune::exec_cuda {

/// Binds row n. Complexity: a count of the keys of the row.
template <class Op, class E>
struct bind_row_program {
  forward_call<Op, E> c;
  ATTUNE_HD index_t tasks() const { return c.p.batch * c.p.heads * c.p.queries; }
  ATTUNE_HD void operator()(index_t n) const {
    index_t const i = n % c.p.queries, h = n / c.p.queries % c.p.heads, b = n / (c.p.queries * c.p.heads);
    mask_row const r = c.p.row(b, h, i);
    index_t count = 0, first = 0, last = 0;
    for (key_interval k = mask::next(c.op.mask, r, 0); !k.empty(); k = mask::next(c.op.mask, r, k.last)) {
      if (count == 0) first = k.first;
      last = k.last;
      count += k.size();
    }
    auto const f = c.op.bind(attune::detail::row_of_count<float>(c.p, count, b, h, i));
    float reference = 0, slope = 1, level = 0;
    using normalizer = typename Op::normalizer_policy;
    if constexpr (tile_facts<Op>::is.family == row_family::masses)
      reference = initial_reference<normalizer, std::remove_cvref_t<decltype(f.normalizer)>, float>(f.normalizer);
    else
      reference = initial_max<float>();
    if constexpr (tile_facts<Op>::affine) {
      float x[2] = {0, 0};
      level = f.logit(x, key<float>{0});
      x[0] = 0x1p20f;
      slope = (f.logit(x, key<float>{0}) - level) * 0x1p-20f;
    }
    c.records[n] = {f, float(count), reference, slope, level, int(first), int(last)};
  }
};

/// Interval masks: the tiles of keys that rows need which see keys in [from, to) and all see [full_from, full_to).
ATTUNE_HD inline tile_plan plan_of_interval(int from, int to, int full_from, int full_to, int keys_each) {
  if (from >= to) return {};
  int const t0 = from / keys_each, t1 = (to + keys_each - 1) / keys_each;
  int a0 = (full_from + keys_each - 1) / keys_each, a1 = full_to / keys_each;
  a0 = a0 < t0 ? t0 : a0 > t1 ? t1 : a0;
  a1 = a1 < a0 ? a0 : a1 > t1 ? t1 : a1;
  return {(a0 - t0) + (t1 - a1), a1 - a0, t0, a0, a1};
}

/// Other masks: 0, 1 or 2 for a tile that no row, some row or every row sees.
template <class Op, class E>
struct classify_program {
  forward_call<Op, E> c;
  int rows_each, keys_each;
  ATTUNE_HD index_t tasks() const { return c.p.batch * c.list_groups * index_t(c.row_tiles) * c.key_tiles; }
  ATTUNE_HD void operator()(index_t n) const {
    index_t const at_rows = n / c.key_tiles;
    int const t = int(n % c.key_tiles), tile = int(at_rows % c.row_tiles),
              group = int(at_rows / c.row_tiles % c.list_groups);
    index_t const b = at_rows / (index_t(c.row_tiles) * c.list_groups);
    index_t const first = index_t(t) * keys_each, last = first + keys_each < c.p.keys ? first + keys_each : c.p.keys;
    bool some = false, every = first + keys_each <= c.p.keys;
    for (int r = tile * rows_each; r < (tile + 1) * rows_each && r < c.rows && !(some && !every); ++r) {
      group_row const at(r, group, c.pack);
      auto const& x = c.records[c.row_number(b, at.head, at.query)];
      if (x.last <= first || last <= x.first) {
        every = false;
        continue;
      }
      mask_row const row = c.p.row(b, at.head, at.query);
      if constexpr (Op::mask_policy::form == mask_form::predicate) {
        for (index_t j = first; j < last && !(some && !every); ++j) {
          bool const sees = mask::sees(c.op.mask, row, j);
          some = some || sees;
          every = every && sees;
        }
      } else {
        key_interval const k = mask::next(c.op.mask, row, first);
        some = some || (!k.empty() && k.first < last);
        every = every && k.first <= first && k.last >= last;
      }
    }
    c.lists[n] = some ? (every ? 2 : 1) : 0;
  }
};
/// Replaces the classes of the tiles of keys by their numbers: partial tiles, then full ones.
template <class Op, class E>
struct list_program {
  forward_call<Op, E> c;
  int* numbers;  ///< as `lists`
  ATTUNE_HD index_t tasks() const { return c.p.batch * c.list_groups * index_t(c.row_tiles); }
  ATTUNE_HD void operator()(index_t n) const {
    int const* const classes = c.lists + n * c.key_tiles;
    int* const to = numbers + n * c.key_tiles;
    tile_plan plan;
    for (int t = 0; t < c.key_tiles; ++t)
      if (classes[t] == 1) to[plan.partial++] = t;
    for (int t = 0; t < c.key_tiles; ++t)
      if (classes[t] == 2) to[plan.partial + plan.full++] = t;
    c.plans[n] = plan;
  }
};

}  // namespace attune::exec_cuda
