// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   visible pairs (i, j)  =  a union of rectangles  {queries} x {keys}, both sorted by their scalar,  and short rows
//
// Sums over sorted keys want sets in which every query sees every key. With full visibility that is one set. A causal mask is a staircase
// and falls into O(log n) levels of blocks: the number of keys that a query sees is a binary number, and each of its bits is one block of
// keys, seen by a run of queries. Windows and documents are pairs of staircases. Sorting is merge sort along the same levels.
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

/// A stretch of positions counted from a corner: forwards from its first, or backwards from behind its last.
struct stretch {
  index_t corner;
  bool backwards;
  key_interval operator()(index_t first, index_t last) const {
    return backwards ? key_interval{corner - last, corner - first} : key_interval{corner + first, corner + last};
  }
};

/// Query r of a stretch sees the first seen[r] keys of another, `seen` ascending. Calls what for_each_visible calls.
template <class W, class Rectangle, class Row>
void climb_staircase(std::span<index_t const> seen, stretch const& queries, stretch const& keys, index_t shortest,
                     sorted_runs<W>& by_query, sorted_runs<W>& by_key, Rectangle const& rectangle, Row const& row) {
  // Keys that all queries see are one rectangle.
  index_t const all = seen.front() >= shortest || seen.front() == seen.back() ? seen.front() : 0;
  index_t const rows = index_t(seen.size()), most = seen.back() - all;
  auto const run_of = [](sorted_runs<W> const& by, key_interval const& k) { return by.run(k.first, k.last); };
  auto const sort = [](sorted_runs<W>& by, key_interval const& k) { by.sort(k.first, k.last); };
  auto const merge = [](sorted_runs<W>& by, stretch const& s, index_t first, index_t middle, index_t last) {
    key_interval const whole = s(first, last), begun = s(first, middle);
    by.merge(whole.first, s.backwards ? begun.first : begun.last, whole.last);
  };
  if (all > 0) {
    sort(by_query, queries(0, rows));
    sort(by_key, keys(0, all));
    rectangle(run_of(by_query, queries(0, rows)), run_of(by_key, keys(0, all)));
  }
  // Of the others, at least n from query first_with(n) on.
  auto const first_with = [&](index_t n) { return std::lower_bound(seen.begin(), seen.end(), all + n) - seen.begin(); };
  for (index_t r = first_with(1); r < rows; ++r) {
    index_t const n = seen[std::size_t(r)] - all, whole = n / shortest * shortest;
    if (whole < n) row(queries(r, r + 1).first, keys(all + whole, all + n).first, keys(all + whole, all + n).last);
  }
  auto const end_of_keys = [&](index_t j) { return all + std::min(j, most); };
  for (index_t size = shortest; size <= most; size *= 2) {
    for (index_t start = 0; start <= most; start += size) {
      index_t const middle = start + size / 2, end = start + size;
      if (size == shortest) {
        sort(by_key, keys(end_of_keys(start), end_of_keys(end)));
        sort(by_query, queries(first_with(start), first_with(end)));
      } else {
        merge(by_key, keys, end_of_keys(start), end_of_keys(middle), end_of_keys(end));
        merge(by_query, queries, first_with(start), first_with(middle), first_with(end));
      }
    }
    for (index_t start = 0; start + size <= most; start += 2 * size) {
      auto const seers = run_of(by_query, queries(first_with(start + size), first_with(start + 2 * size)));
      if (!seers.empty()) rectangle(seers, run_of(by_key, keys(all + start, all + start + size)));
    }
  }
}

/// Calls rectangle(queries, keys) with index lists sorted by value, both not empty, and row(i, first, last) for queries that see the
/// fewer than `shortest` keys [first, last) besides, at most two such stretches each. Every visible pair is met once, in an order that
/// depends on the extents and the visibility alone.
/// Queries whose intervals share a place fall into two staircases, of the keys behind it and of those before it; a key is in two
/// such runs of queries at most, so that the cost is that of causal visibility.
template <class W, class Rectangle, class Row>
void for_each_visible(visibility const& sees, line<W> const& on, index_t shortest, Rectangle const& rectangle, Row const& row) {
  index_t const queries = index_t(on.q.size()), keys = index_t(on.k.size());
  std::vector<key_interval> const seen = sees.intervals(queries, keys);
  sorted_runs<W> by_query(on.q), by_key(on.k);
  std::vector<index_t> steps;
  for (index_t i = 0; i < queries;) {
    index_t const reach = seen[std::size_t(i)].last;
    if (seen[std::size_t(i)].empty()) {
      ++i;
      continue;
    }
    index_t end = i;
    while (end < queries && seen[std::size_t(end)].first < reach) ++end;
    index_t const place = seen[std::size_t(end - 1)].first;
    steps.clear();
    for (index_t r = i; r < end; ++r) steps.push_back(seen[std::size_t(r)].last - place);
    climb_staircase<W>(steps, {i, false}, {place, false}, shortest, by_query, by_key, rectangle, row);
    steps.clear();
    for (index_t r = end; r-- > i && seen[std::size_t(i)].first < place;) steps.push_back(place - seen[std::size_t(r)].first);
    if (!steps.empty()) climb_staircase<W>(steps, {end, true}, {place, true}, shortest, by_query, by_key, rectangle, row);
    i = end;
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
