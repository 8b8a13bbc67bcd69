// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   visible pairs (i, j)  =  a union of rectangles  {queries} x {keys}, both sorted by their scalar,  and short rows
//
// Sums over sorted keys want sets in which every query sees every key. With full visibility that is one set. A causal mask falls into
// O(log n) levels of blocks: the number of keys that a query sees is a binary number, and each of its bits is one block of keys, seen by
// a run of queries. Sorting is merge sort along the same levels: O(n log n) in all.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <attune/sorted/rows.hpp>

namespace attune::sorted::detail {

/// One head's scalars.
template <class W>
struct line {
  std::vector<W> q, k;
  template <class T>
  line(arrays<T> const& in, extents const& e, index_t b, index_t h) {
    for (index_t i = 0; i < e.queries; ++i) q.push_back(W(in.sort_q(b, h, i, 0)));
    for (index_t j = 0; j < e.keys; ++j) k.push_back(W(in.sort_k(b, e.key_head(h), j, 0)));
  }
};

/// Indices sorted by (value, index) within runs that grow by merging pairs of neighbours.
template <class W>
class sorted_runs {
 public:
  sorted_runs(std::vector<W> const& values) : values_(&values), order_(values.size()), next_(values.size()) {
    std::iota(order_.begin(), order_.end(), index_t{0});
  }
  void sort(index_t first, index_t last) {
    pairs_.clear();
    for (index_t n = first; n < last; ++n) pairs_.push_back({(*values_)[std::size_t(n)], n});
    std::sort(pairs_.begin(), pairs_.end(),
              [](pair const& a, pair const& b) { return a.value < b.value || (a.value == b.value && a.index < b.index); });
    for (index_t n = first; n < last; ++n) order_[std::size_t(n)] = pairs_[std::size_t(n - first)].index;
  }
  void merge(index_t first, index_t middle, index_t last) {
    if (first == middle || middle == last) return;
    std::merge(order_.begin() + first, order_.begin() + middle, order_.begin() + middle, order_.begin() + last,
               next_.begin() + first, less());
    std::copy(next_.begin() + first, next_.begin() + last, order_.begin() + first);
  }
  std::span<index_t const> run(index_t first, index_t last) const {
    return std::span<index_t const>(order_).subspan(std::size_t(first), std::size_t(last - first));
  }

 private:
  auto less() const {
    return [x = values_->data()](index_t a, index_t b) { return x[a] < x[b]; };
  }
  struct pair {
    W value;
    index_t index;
  };
  std::vector<W> const* values_;
  std::vector<index_t> order_, next_;
  std::vector<pair> pairs_;  // sorted in place of indices: no lookup per comparison
};

/// Calls rectangle(queries, keys) with index lists sorted by value, both not empty, and row(i, first, last) for queries that see the
/// keys [first, last) besides. Every visible pair is met once, in an order that depends on the extents alone.
template <class W, class Rectangle, class Row>
void for_each_visible(visibility sees, line<W> const& on, Rectangle const& rectangle, Row const& row) {
  index_t const queries = index_t(on.q.size()), keys = index_t(on.k.size());
  sorted_runs<W> by_query(on.q), by_key(on.k);
  if (sees == visibility::full) {
    by_query.sort(0, queries);
    by_key.sort(0, keys);
    if (queries > 0 && keys > 0) rectangle(by_query.run(0, queries), by_key.run(0, keys));
    return;
  }
  // Query i sees the keys [0, i + offset + 1): at least `seen` keys from query first_with(seen) on.
  index_t const offset = keys - queries;
  auto const first_with = [&](index_t seen) {
    return seen <= 0 ? index_t{0} : std::clamp<index_t>(seen - 1 - offset, 0, queries);
  };
  for (index_t i = first_with(1); i < queries; ++i) {
    index_t const seen = i + offset + 1, whole = seen / shortest_block * shortest_block;
    if (whole < seen) row(i, whole, seen);
  }
  auto const end_of_keys = [&](index_t j) { return std::min(j, keys); };
  for (index_t size = shortest_block; size <= keys; size *= 2) {
    for (index_t start = 0; start <= keys; start += size) {
      index_t const half = start + size / 2, end = start + size;
      if (size == shortest_block) {
        by_key.sort(end_of_keys(start), end_of_keys(end));
        by_query.sort(first_with(start), first_with(end));
      } else {
        by_key.merge(end_of_keys(start), end_of_keys(half), end_of_keys(end));
        by_query.merge(first_with(start), first_with(half), first_with(end));
      }
    }
    for (index_t start = 0; start + size <= keys; start += 2 * size) {
      auto const seers = by_query.run(first_with(start + size), first_with(start + 2 * size));
      if (!seers.empty()) rectangle(seers, by_key.run(start, start + size));
    }
  }
}

template <class W>
inline bool before(W const& x, W const& y) {
  return x < y;
}
template <class W>
inline bool not_behind(W const& x, W const& y) {
  return x <= y;
}

/// From the left: visit(t) for every target in ascending order, each after absorb(s) for the sources before it.
template <class W, class Before, class Absorb, class Visit>
void ascend(std::span<index_t const> targets, std::vector<W> const& at, std::span<index_t const> sources,
            std::vector<W> const& from, Before const& is_before, Absorb const& absorb, Visit const& visit) {
  std::size_t s = 0;
  for (index_t const t : targets) {
    for (; s < sources.size() && is_before(from[std::size_t(sources[s])], at[std::size_t(t)]); ++s) absorb(sources[s]);
    visit(t);
  }
}

/// From the right: visit(t) for every target in descending order, each after absorb(s) for the sources strictly behind it.
template <class W, class Absorb, class Visit>
void descend(std::span<index_t const> targets, std::vector<W> const& at, std::span<index_t const> sources,
             std::vector<W> const& from, Absorb const& absorb, Visit const& visit) {
  std::size_t s = sources.size();
  for (std::size_t t = targets.size(); t-- > 0;) {
    for (; s > 0 && at[std::size_t(targets[t])] < from[std::size_t(sources[s - 1])]; --s) absorb(sources[s - 1]);
    visit(targets[t]);
  }
}

}  // namespace attune::sorted::detail
