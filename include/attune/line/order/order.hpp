// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   visible pairs (i, j)  =  a union of rectangles  {queries} x {keys}, both sorted by their scalar,  and short rows
//
// Sums over sorted keys need sets in which every query sees every key. With full visibility that is one set. A causal
// mask is a staircase and splits into O(log n) levels of blocks. The number of keys that a query sees is a binary
// number, and each of its bits is one block of keys, seen by a run of queries. Windows and documents are pairs of
// staircases. Sorting is merge sort along the same levels. (Alternatively a staircase is processed in blocks of
// positions, blocks.hpp: more additions than by levels, but sequential.)
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include <attune/line/order/radix.hpp>
#include <attune/line/order/rows.hpp>
#include <attune/line/order/sight.hpp>

namespace attune::line::detail {

/// The scalars of one head.
template <class W>
struct scalars {
  std::vector<W> q, k;
  template <class T>
  scalars(arrays<T> const& in, extents const& e, index_t b, index_t h) {
    for (index_t i = 0; i < e.queries; ++i) q.push_back(W(in.sort_q(b, h, i, 0)));
    for (index_t j = 0; j < e.keys; ++j) k.push_back(W(in.sort_k(b, e.key_head(h), j, 0)));
  }
};

/// Indices sorted by (value, index) within runs that grow by merging pairs of neighbors.
template <class W>
class sorted_runs {
 public:
  sorted_runs(std::vector<W> const& values) : values_(&values), order_(values.size()), next_(values.size()) {
    std::iota(order_.begin(), order_.end(), index_t{0});
  }
  void sort(index_t first, index_t last) {
    if constexpr (std::is_same_v<W, double>) {
      if (last - first >= worth_digits) return sort_digits(first, last);
    }
    pairs_.clear();
    for (index_t n = first; n < last; ++n) pairs_.push_back({(*values_)[std::size_t(n)], n});
    std::sort(pairs_.begin(), pairs_.end(), [](pair const& a, pair const& b) {
      return a.value < b.value || (a.value == b.value && a.index < b.index);
    });
    for (index_t n = first; n < last; ++n) order_[std::size_t(n)] = pairs_[std::size_t(n - first)].index;
  }
  void merge(index_t first, index_t middle, index_t last) {
    if (first == middle || middle == last) return;
    std::merge(order_.begin() + first, order_.begin() + middle, order_.begin() + middle, order_.begin() + last,
               next_.begin() + first, less());
    std::copy(next_.begin() + first, next_.begin() + last, order_.begin() + first);
  }
  std::span<index_t const> run(key_interval const& of) const {
    return std::span<index_t const>(order_).subspan(std::size_t(of.first), std::size_t(of.size()));
  }

 private:
  auto less() const {
    return [x = values_->data()](index_t a, index_t b) { return x[a] < x[b]; };
  }
  static constexpr index_t worth_digits = 400;
  void sort_digits(index_t first, index_t last) {
    list_.clear();
    for (index_t n = first; n < last; ++n) list_.push_back({ranked::digits_of((*values_)[std::size_t(n)]), n});
    radix_sort(list_, scratch_);
    for (index_t n = first; n < last; ++n) order_[std::size_t(n)] = list_[std::size_t(n - first)].index;
  }
  struct pair {
    W value;
    index_t index;
  };
  std::vector<W> const* values_;
  std::vector<index_t> order_, next_;
  std::vector<pair> pairs_;  // sorted instead of the indices: no lookup per comparison
  std::vector<ranked> list_, scratch_;
};

/// A stretch of positions counted from a corner: forwards from its first position, or backwards from behind its last.
struct stretch {
  index_t corner;
  bool backwards;
  key_interval operator()(index_t first, index_t last) const {
    return backwards ? key_interval{corner - last, corner - first} : key_interval{corner + first, corner + last};
  }
  /// The stretch without its first `n` positions.
  stretch from(index_t n) const { return {backwards ? corner - n : corner + n, backwards}; }
};

/// Query r of one stretch sees the first seen[r] keys of another stretch; `seen` is ascending.
struct staircase {
  std::span<index_t const> seen;
  stretch queries, keys;
  index_t query(index_t r) const { return queries(r, r + 1).first; }
  index_t key(index_t n) const { return keys(n, n + 1).first; }
  /// The staircase without the first `rows` queries and the first `all` keys.
  staircase from(index_t rows, index_t all) const {
    return {seen.subspan(std::size_t(rows)), queries.from(rows), keys.from(all)};
  }
};

/// Covers the pairs of a staircase with rectangles, by levels of blocks whose lengths double from `shortest`, and with
/// short rows.
template <class W, class Rectangle, class Row>
void climb_levels(staircase const& stairs, index_t shortest, sorted_runs<W>& by_query, sorted_runs<W>& by_key,
                  Rectangle const& rectangle, Row const& row) {
  stretch const &queries = stairs.queries, &keys = stairs.keys;
  std::span<index_t const> const seen = stairs.seen;
  auto const sort = [](sorted_runs<W>& by, key_interval const& k) { by.sort(k.first, k.last); };
  auto const merge = [](sorted_runs<W>& by, stretch const& s, index_t first, index_t middle, index_t last) {
    key_interval const whole = s(first, last), begun = s(first, middle);
    by.merge(whole.first, s.backwards ? begun.first : begun.last, whole.last);
  };
  index_t const rows = index_t(seen.size()), most = seen.back();
  auto const first_with = [&](index_t n) { return std::lower_bound(seen.begin(), seen.end(), n) - seen.begin(); };
  for (index_t r = 0; r < rows; ++r) {
    index_t const n = seen[std::size_t(r)], whole = n / shortest * shortest;
    if (whole < n) row(stairs.query(r), keys(whole, n).first, keys(whole, n).last);
  }
  auto const end_of_keys = [&](index_t j) { return (std::min)(j, most); };
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
      auto const seers = by_query.run(queries(first_with(start + size), first_with(start + 2 * size)));
      if (!seers.empty()) rectangle(seers, by_key.run(keys(start, start + size)));
    }
  }
}

/// Calls rectangle(queries, keys) for the keys that all queries of a staircase see, if there are at least `shortest` of
/// them. Then calls stairs(rest) for the remaining pairs, if any.
template <class W, class Rectangle, class Stairs>
void split_staircase(staircase const& whole, index_t shortest, sorted_runs<W>& by_query, sorted_runs<W>& by_key,
                     Rectangle const& rectangle, Stairs const& stairs) {
  std::span<index_t const> const seen = whole.seen;
  index_t const all = seen.front() >= shortest || seen.front() == seen.back() ? seen.front() : 0;
  if (all > 0) {
    key_interval const queries = whole.queries(0, index_t(seen.size())), keys = whole.keys(0, all);
    by_query.sort(queries.first, queries.last);
    by_key.sort(keys.first, keys.last);
    rectangle(by_query.run(queries), by_key.run(keys));
  }
  index_t const rows = std::upper_bound(seen.begin(), seen.end(), all) - seen.begin();  // rows that see no more keys
  if (rows == index_t(seen.size())) return;
  std::vector<index_t> rest;
  for (index_t const n : seen.subspan(std::size_t(rows))) rest.push_back(n - all);
  staircase left = whole.from(rows, all);
  left.seen = rest;
  stairs(left);
}

/// Splits the visible pairs into staircases. Queries whose intervals share a position form two: one for the keys behind
/// it and one for the keys before it. A key is in at most two such runs of queries, so the cost is the same as for
/// causal visibility.
template <class Use>
void for_each_staircase(sight const& sees, Use const& use) {
  std::vector<key_interval> const& seen = sees.intervals();
  index_t const queries = index_t(seen.size());
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
    use(staircase{steps, {i, false}, {place, false}});
    steps.clear();
    for (index_t r = end; r-- > i && seen[std::size_t(i)].first < place;)
      steps.push_back(place - seen[std::size_t(r)].first);
    if (!steps.empty()) use(staircase{steps, {end, true}, {place, true}});
    i = end;
  }
}

/// The key counts of the staircase, if all visible pairs form a single one that begins at the first key. Empty
/// otherwise, or if the first query already sees `many` keys.
inline std::vector<index_t> lone_staircase(sight const& sees, index_t many) {
  std::vector<index_t> counts;
  for (key_interval const& seen : sees.intervals()) {
    if (!seen.empty() && seen.first != 0) return {};
    counts.push_back(seen.size());
  }
  return counts.empty() || counts.front() >= many || !std::is_sorted(counts.begin(), counts.end())
             ? std::vector<index_t>{}
             : counts;
}

/// Calls rectangle(queries, keys) with non-empty index lists sorted by value, and row(i, first, last) for the remaining
/// keys [first, last) of a query: fewer than `shortest`, in at most two stretches per query. Every visible pair occurs
/// once, in an order that depends only on the extents and on the mask. Staircases for which takes(staircase) returns
/// true are skipped, because `takes` has processed their pairs.
template <class W, class Rectangle, class Row, class Takes>
void for_each_visible(sight const& sees, scalars<W> const& on, index_t shortest, Rectangle const& rectangle,
                      Row const& row, Takes const& takes) {
  sorted_runs<W> by_query(on.q), by_key(on.k);
  for_each_staircase(sees, [&](staircase const& whole) {
    split_staircase(whole, shortest, by_query, by_key, rectangle, [&](staircase const& stairs) {
      if (!takes(stairs)) climb_levels(stairs, shortest, by_query, by_key, rectangle, row);
    });
  });
}
template <class W, class Rectangle, class Row>
void for_each_visible(sight const& sees, scalars<W> const& on, index_t shortest, Rectangle const& rectangle,
                      Row const& row) {
  for_each_visible(sees, on, shortest, rectangle, row, [](staircase const&) { return false; });
}

template <class W>
inline bool before(W const& x, W const& y) {
  return x < y;
}
template <class W>
inline bool not_behind(W const& x, W const& y) {
  return x <= y;
}

/// From the left: visit(t) for every target in ascending order, each after accumulate(s) for the sources before it.
template <class W, class Before, class Accumulate, class Visit>
void ascend(std::span<index_t const> targets, std::vector<W> const& at, std::span<index_t const> sources,
            std::vector<W> const& from, Before const& is_before, Accumulate const& accumulate, Visit const& visit) {
  std::size_t s = 0;
  for (index_t const t : targets) {
    for (; s < sources.size() && is_before(from[std::size_t(sources[s])], at[std::size_t(t)]); ++s)
      accumulate(sources[s]);
    visit(t);
  }
}

/// From the right: visit(t) for every target in descending order, each after accumulate(s) for the sources strictly
/// behind it.
template <class W, class Accumulate, class Visit>
void descend(std::span<index_t const> targets, std::vector<W> const& at, std::span<index_t const> sources,
             std::vector<W> const& from, Accumulate const& accumulate, Visit const& visit) {
  std::size_t s = sources.size();
  for (std::size_t t = targets.size(); t-- > 0;) {
    for (; s > 0 && at[std::size_t(targets[t])] < from[std::size_t(sources[s - 1])]; --s) accumulate(sources[s - 1]);
    visit(targets[t]);
  }
}

}  // namespace attune::line::detail
