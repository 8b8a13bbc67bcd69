// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a tile  =  tiling::queries rows of one head, from query `first_query` on
//
// The first step of a row: the position of the tile, and the keys that its rows see. Of each block of keys they see
// nothing (skip it), everything (no mask at all), or a part. This uses the interval form of masks and works for every
// mask alike. Costs O(intervals) per lane and block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <attune/core/math.hpp>
#include <attune/exec/cpu/contraction/operands.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/tiling.hpp>
#include <attune/exec/cpu/row/planes.hpp>
#include <attune/exec/problem.hpp>

namespace attune::exec_cpu {

/// Types and sizes of the tiles of an operator.
template <class T, class Arch, class Op>
struct tile_types {
  using shape_of = tiling<T, Arch>;
  using batch = typename shape_of::batch;
  using inputs_type = inputs<Op, tensor<T const>>;
  using normalizer = typename Op::normalizer_policy;
  using contractions = typename Op::contractions;
  static constexpr int vectors = shape_of::vectors, lanes = shape_of::lanes, queries = shape_of::queries;
  static constexpr normalizer_traits traits = normalizer::traits;
  static constexpr bool adjusted = pair_planes<Op>::adjusted;
  static constexpr index_t block = shape_of::key_block;
  static constexpr int pairs = contractions::size;
  static constexpr int logit_pairs = Op::logit_contractions;  ///< contractions that logits read
  using planes = pair_planes<Op>;
  static constexpr index_t pair_buffer = padded<T>(block * queries);
};

/// The keys that a tile of `Lanes` consecutive queries sees. Blocks must come in ascending order, or `seek` each one.
template <class Mask, int Lanes>
class tile_visibility {
 public:
  static_assert(Lanes <= 64);

  /// Lane l is query min(first_query + l, Lq - 1), also where a window has fewer rows: how a row is summed then depends
  /// on its place in the whole problem alone.
  tile_visibility(Mask const& m, problem_shape const& p, index_t b, index_t h, index_t first_query) : mask_(&m) {
    hull = {p.keys, 0};
    index_t widest_first = 0, narrowest_last = p.keys;
    bool one_interval = true;
    for (int l = 0; l < Lanes; ++l) {
      index_t const i = first_query + l < p.whole_queries() ? first_query + l : p.whole_queries() - 1;
      row_[l] = p.row(b, h, i);
      cursor_[l] = mask::next(m, row_[l], 0);
      index_t n = 0, last = 0;
      for (key_interval k = cursor_[l]; !k.empty(); k = mask::next(m, row_[l], k.last)) n += k.size(), last = k.last;
      count[l] = n;
      one_interval = one_interval && n == cursor_[l].size();
      if (n > 0 && cursor_[l].first < hull.first) hull.first = cursor_[l].first;
      if (last > hull.last) hull.last = last;
      widest_first = n == 0 ? p.keys : mask::detail::at_least(widest_first, cursor_[l].first);
      narrowest_last = n == 0 ? 0 : mask::detail::at_most(narrowest_last, last);
    }
    if (one_interval) common = {widest_first, narrowest_last};
  }

  index_t count[Lanes];   ///< K of each lane
  key_interval hull;      ///< no lane sees a key outside
  key_interval common{};  ///< every lane sees these; empty where lanes have several intervals

  enum class seen { none, some, all };

  /// Before `block`: any block may come next. A predicate mask reads the keys from `first` to the end of an interval.
  void seek(index_t first, index_t last) {
    if (first >= common.first && last <= common.last) return;
    for (int l = 0; l < Lanes; ++l) cursor_[l] = mask::next(*mask_, row_[l], first);
  }
  /// Whether the lanes see none, some or all of their pairs with keys [first, last). Fills bits[0, last - first) if the
  /// result is `some`.
  seen block(index_t first, index_t last, std::uint64_t* bits) {
    if (first >= common.first && last <= common.last) return seen::all;
    bool any = false, every = true;
    for (int l = 0; l < Lanes; ++l) {
      key_interval& k = cursor_[l];
      while (!k.empty() && k.last <= first) k = mask::next(*mask_, row_[l], k.last);
      bool const touched = !k.empty() && k.first < last;
      any = any || touched;
      every = every && touched && k.first <= first && k.last >= last;
    }
    if (!any) return seen::none;
    if (every) return seen::all;
    for (index_t j = 0; j < last - first; ++j) bits[j] = 0;
    for (int l = 0; l < Lanes; ++l)  // a bit toggles where its lane starts or stops seeing ...
      for (key_interval k = cursor_[l]; !k.empty() && k.first < last; k = mask::next(*mask_, row_[l], k.last)) {
        bits[mask::detail::at_least(k.first, first) - first] ^= std::uint64_t(1) << l;
        if (k.last < last) bits[k.last - first] ^= std::uint64_t(1) << l;
      }
    for (index_t j = 1; j < last - first; ++j) bits[j] ^= bits[j - 1];  // ... and keeps its value in between
    return seen::some;
  }

 private:
  Mask const* mask_;
  mask_row row_[Lanes];
  key_interval cursor_[Lanes];
};

/// The keys of a block that any row sees. A block on the edge of a mask may still contain a stretch [full_first,
/// full_last) that every row sees: only the rest pays for masking.
struct seen_block {
  index_t first, n, full_first, full_last;
};

template <class T, class Arch, class Op>
struct tile_view {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  static constexpr int lanes = types::lanes, queries = types::queries;

  tile_visibility<typename Op::mask_policy, queries> sees;
  Op const* op;
  problem_shape const* p;
  index_t b, h, first_query;
  index_t skipped;  ///< lanes before the window of the call: they repeat its first row
  index_t count;    ///< where the rows end; lanes past them repeat the last row

  tile_view(Op const& of, tile_place const& at)
      : sees(of.mask, *at.p, at.b, at.h, at.first), op(&of), p(at.p), b(at.b), h(at.h), first_query(at.first),
        skipped((std::max)(index_t(0), at.p->first_query - at.first)),
        count((std::min)(index_t(queries), at.p->queries - at.first)) {}

  tile_place place() const { return {p, b, h, first_query}; }
  /// The query of lane l.
  index_t query(index_t l) const { return (std::min)(first_query + l, p->queries - 1); }

  /// The saved numbers of lanes [v * lanes, (v + 1) * lanes): x[rows.at(batch, head, query)].
  template <class Rows>
  batch saved_lanes(Rows const& rows, std::span<T const> x, int v) const {
    alignas(64) T lane[lanes];
    for (index_t l = 0; l < lanes; ++l) lane[l] = x[std::size_t(rows.at(b, h, query(v * lanes + l)))];
    return batch::load_aligned(lane);
  }

  /// The keys of [first, last) between the first and the last that any row sees, with a bit for each row that sees
  /// them; n = 0 if no row sees any.
  seen_block seen(index_t first, index_t last, std::uint64_t* bits) {
    using who = typename tile_visibility<typename Op::mask_policy, queries>::seen;
    first = (std::max)(first, sees.hull.first);
    last = (std::min)(last, sees.hull.last);
    if (first >= last) return {first, 0, 0, 0};
    if constexpr (has_ordered_sums<Op>) sees.seek(first, last);
    who const some = sees.block(first, last, bits);
    if (some == who::none) return {first, 0, 0, 0};
    seen_block s{first, last - first, 0, some == who::all ? last - first : 0};
    if (some == who::some && !sees.common.empty()) {
      s.full_first = std::clamp(sees.common.first - first, index_t(0), s.n);
      s.full_last = std::clamp(sees.common.last - first, s.full_first, s.n);
    }
    return s;
  }
};

}  // namespace attune::exec_cpu
