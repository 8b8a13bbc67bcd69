// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows of softmax attention of the heads at hand, as the analysis reads them: weights and the values that they weigh.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <attune/analysis/weights.hpp>

#include "experiments.hpp"
#include "shared/each.hpp"
#include "shared/text.hpp"

namespace gallery {

namespace analysis = attune::analysis;

/// A row: a query of a head that sees the first `keys` positions.
struct row_place {
  std::size_t layer = 0, head = 0;  ///< head: among those of all layers
  index_t head_of_layer = 0, query = 0, keys = 0;
};

/// Queries per head: with 24 heads 144 rows, as many as the papers' model has heads.
inline index_t queries_per_head(context const& c) { return c.quick ? 1 : 6; }
/// The same in the grid of Principled Attention, which has 64 operators to run.
inline index_t grid_queries_per_head(context const& c) { return c.quick ? 1 : 4; }

/// The rows of every head over the first `keys` positions, their queries evenly spaced in them; head by head.
inline std::vector<row_place> rows_of(context const& c, index_t keys) {
  index_t const queries = queries_per_head(c);
  std::vector<row_place> all;
  std::size_t head = 0;
  for (std::size_t n = 0; n < c.layers.size(); ++n)
    for (index_t h = 0; h < c.layers[n].heads; ++h, ++head)
      for (index_t i = 0; i < queries; ++i) all.push_back({n, head, h, (2 * i + 1) * keys / (2 * queries), keys});
  return all;
}

inline std::vector<double> scores_of(context const& c, row_place const& r) {
  return c.layers[r.layer].scores(r.head_of_layer, r.query, r.keys);
}

/// The values of the first keys of a head, (key, feature).
inline std::vector<double> values_of(context const& c, row_place const& r) {
  apps::layer const& l = c.layers[r.layer];
  auto const first = l.v.begin() + r.head_of_layer * l.length * l.width;
  return {first, first + r.keys * l.width};
}

/// f(n) for every n < count on all threads; what it returns, in order.
template <class F>
auto computed(context const& c, std::size_t count, F const& f) {
  std::vector<decltype(f(std::size_t(0)))> all(count);
  apps::each(c.threads, std::ptrdiff_t(count), [&](std::ptrdiff_t n) { all[std::size_t(n)] = f(std::size_t(n)); });
  return all;
}

/// The number below which a share of the numbers lies, linear between neighbours.
inline double quantile(std::vector<double> x, double share) {
  if (x.empty()) return std::nan("");
  std::sort(x.begin(), x.end());
  double const at = share * double(x.size() - 1);
  auto const below = std::size_t(at);
  if (below + 1 >= x.size()) return x.back();
  return x[below] + (at - double(below)) * (x[below + 1] - x[below]);
}

inline double mean(std::vector<double> const& x) { return analysis::sum(x) / double(x.size()); }

/// a <= b up to rounding, or the library is wrong: throws std::runtime_error.
inline void require_at_most(double a, double b, char const* what) {
  if (!(a <= b + 1e-9 * (std::fabs(a) + std::fabs(b)) + 1e-12))
    throw std::runtime_error(apps::text("%s: %.17g exceeds its bound %.17g", what, a, b));
}

}  // namespace gallery
