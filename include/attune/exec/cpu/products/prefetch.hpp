// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Prefetches rows of keys and values that are read soon, while others are multiplied.
#pragma once

#include <attune/core/tensor.hpp>

namespace attune::exec_cpu {

/// Rows that are read soon. Prefetching them while others are multiplied hides much of the memory latency. The hardware
/// prefetcher alone starts again at every page, and K and V take turns.
struct prefetch_range {
  char const* first = nullptr;
  index_t step = 0, rows = 0, bytes = 0;  ///< step in bytes; `bytes` of each row
  static constexpr index_t line = 64;

  prefetch_range() = default;
  /// Positions [from, to) of a head; nothing if features are not contiguous or the range is empty.
  template <class T>
  prefetch_range(tensor<T const> const& x, index_t b, index_t h, index_t from, index_t to) {
    if (from >= to || x.steps().feature != 1) return;
    first = reinterpret_cast<char const*>(x.row(b, h, from));
    step = x.steps().position * index_t(sizeof(T)), rows = to - from, bytes = x.extents().feature * index_t(sizeof(T));
  }
  /// The bytes from `from` on of each row.
  prefetch_range part(index_t from) const {
    prefetch_range to = *this;
    if (from >= bytes) return {};
    to.first += from;
    to.bytes -= from;
    return to;
  }
  /// Prefetches the first `Lines` cache lines of the first row, and drops that row.
  template <int Lines>
  ATTUNE_INLINE void fetch_next() {
    if (rows <= 0) return;
    for (int l = 0; l < Lines; ++l) ATTUNE_PREFETCH(first + l * line);
    if (--rows > 0) first += step;
  }
  /// Prefetches rows [from, to), or as many of them as there are.
  ATTUNE_INLINE void fetch_rows(index_t from, index_t to) const {
    to = to < rows ? to : rows;
    if (from >= to) return;
    if (step == bytes) {  // the rows are contiguous
      char const *at = first + from * step, *last = first + to * step;
      for (; last - at >= 4 * line; at += 4 * line)
        ATTUNE_PREFETCH(at), ATTUNE_PREFETCH(at + line), ATTUNE_PREFETCH(at + 2 * line), ATTUNE_PREFETCH(at + 3 * line);
      for (; at < last; at += line) ATTUNE_PREFETCH(at);
    } else {
      for (index_t j = from; j < to; ++j) fetch(j, 0, bytes);
    }
  }
  /// Prefetches the cache lines of row j that begin at bytes [from, to) of the row. Parts that share a line prefetch it
  /// once.
  ATTUNE_INLINE void fetch(index_t j, index_t from, index_t to) const {
    if (j < rows)
      for (char const *at = first + j * step + (from + line - 1) / line * line, *last = first + j * step + to;
           at < last; at += line)
        ATTUNE_PREFETCH(at);
  }
  /// Prefetches a row whose neighbors are not needed, including the cache line in which it ends.
  ATTUNE_INLINE void fetch_alone(index_t j) const {
    if (j >= rows || bytes == 0) return;
    fetch(j, 0, bytes);
    ATTUNE_PREFETCH(first + j * step + bytes - 1);
  }
};

/// Prefetches rows [from, to) of a head.
template <class T>
ATTUNE_NOINLINE void prefetch_rows(tensor<T const> const& x, index_t b, index_t h, index_t from, index_t to) {
  prefetch_range const rows(x, b, h, from, to);
  for (index_t j = 0; j < rows.rows; ++j) rows.fetch(j, 0, rows.bytes);
}
template <class View>
  requires requires(View const& x) { x.is_converted_by_itself; }
void prefetch_rows(View const& x, index_t b, index_t h, index_t from, index_t to) {
  x.visit([&](auto const& stored) { exec_cpu::prefetch_rows(stored, b, h, from, to); });
}

}  // namespace attune::exec_cpu
