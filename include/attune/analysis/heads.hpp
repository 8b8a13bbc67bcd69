// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   covered = 1 - (1 - p)^H,   map of a head in [0, 1],   similarity = mean over rows of 1 - JS(w_h, w_h') / ln 2
//
// Several heads at once: the share of the selected keys that they cover, their maps, and their similarity.
#pragma once

#include <attune/analysis/row_shape.hpp>

namespace attune::analysis {

/// 1 - (1 - p)^H: the share of the selected keys that H independent heads keep separable, if each keeps p. Heads that
/// agree cover p. Throws attune::error unless 0 <= p <= 1 and H >= 0. Source: Limits of Normalization, section 4.
template <class T>
T head_coverage(T const& p, index_t heads) {
  if (!(p >= T(0)) || !(p <= T(1)))
    throw error("analysis::head_coverage", "p", attune::detail::text("the value ", double(p)), "a share in [0, 1]");
  detail::require_count("analysis::head_coverage", "heads", heads, 0, (std::numeric_limits<index_t>::max)());
  if (heads == 0) return T(0);
  if (p == T(1)) return T(1);
  return -math::expm1(T(T(double(heads)) * math::log1p(T(-p))));
}

/// The smallest H with coverage >= target. Throws attune::error unless 0 < p <= 1 and 0 <= target < 1 (or p = 1).
template <class T>
index_t heads_needed(T const& p, T const& target) {
  detail::require_positive("analysis::heads_needed", "p", p);
  if (!(target >= T(0)) || (!(target < T(1)) && p < T(1)))
    throw error("analysis::heads_needed", "target", attune::detail::text("the value ", double(target)),
                "a share in [0, 1)");
  if (head_coverage(p, 1) >= target) return target > T(0) ? 1 : 0;
  auto heads = index_t(double(T(math::log1p(T(-target)) / math::log1p(T(-p)))));  // estimate, corrected by the loops
  while (heads > 1 && head_coverage(p, heads - 1) >= target) --heads;
  while (head_coverage(p, heads) < target) ++heads;
  return heads;
}

/// Maps weights (rows, keys) to [0, 1]: the smallest weight of the map to 0 and the largest to 1. All 0 if they are
/// equal. With `sink_shares` (one per row, S), each row is first divided by 1 - S: a map of the shares among the keys.
/// A row with only sink mass is 0.
/// Source: Affine-Scaled Attention, appendix A.2.
template <numbers R, class T = number_of<R>>
std::vector<T> head_map(points<T> const& weights, R const& sink_shares) {
  if (count_of(sink_shares) != 0)
    detail::require_length("analysis::head_map", "sink_shares", count_of(sink_shares), weights.count());
  std::vector<T> map;
  for (index_t i = 0; i < weights.count(); ++i) {
    T const kept = count_of(sink_shares) == 0 ? T(1) : T(T(1) - std::ranges::data(sink_shares)[i]);
    for (T const& w : weights[i]) map.push_back(kept > T(0) ? T(w / kept) : T(0));
  }
  if (map.empty()) return map;
  T low = map.front(), high = map.front();
  for (T const& w : map) {
    low = math::smaller(low, w);
    high = math::larger(high, w);
  }
  for (T& w : map) w = high > low ? T((w - low) / (high - low)) : T(0);
  return map;
}
/// The same without sink shares: the map of the weights as they are.
template <class T>
std::vector<T> head_map(points<T> const& weights) {
  return head_map(weights, std::vector<T>{});
}

/// JS(p, q) = sum of p log(2 p / (p + q)) + q log(2 q / (p + q)), halved: nats, in [0, ln 2] for rows that sum to 1.
template <numbers P, numbers Q, class T = number_of<P>>
T jensen_shannon(P const& p, Q const& q) {
  detail::require_length("analysis::jensen_shannon", "q", count_of(q), count_of(p));
  T s(0);
  auto b = std::ranges::begin(q);
  for (T const& x : p) {
    T const y = *b++, middle = (x + y) / T(2);
    if (x > T(0)) s = s + x * math::log(T(x / middle));
    if (y > T(0)) s = s + y * math::log(T(y / middle));
  }
  return math::larger(T(s / T(2)), T(0));
}

/// 1 for equal heads, 0 for heads whose rows share no key. Rows are first normalized to sum 1. Rows without mass in
/// either head are skipped. 1 if no row remains. Weights >= 0.
template <class T>
T head_similarity(points<T> const& a, points<T> const& b) {
  detail::require_length("analysis::head_similarity", "b", b.count(), a.count());
  detail::require_length("analysis::head_similarity", "width of b", b.width(), a.width());
  T total(0);
  index_t rows = 0;
  auto const unit = [](std::span<T const> w) {
    std::vector<T> u(w.begin(), w.end());
    T const mass = sum(u);
    for (T& x : u) x = x / mass;
    return u;
  };
  for (index_t i = 0; i < a.count(); ++i) {
    if (!(sum(a[i]) > T(0)) || !(sum(b[i]) > T(0))) continue;
    total = total + (T(1) - jensen_shannon(unit(a[i]), unit(b[i])) / math::log(T(2)));
    ++rows;
  }
  return rows == 0 ? T(1) : T(total / T(double(rows)));
}

}  // namespace attune::analysis
