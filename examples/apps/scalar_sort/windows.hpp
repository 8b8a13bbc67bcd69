// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a window of a sorted cache captures of scalar and hybrid heads, against all keys. The cache's templates are
// compiled once, in windows.cpp.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include <attune/line/windows.hpp>

#include "fit.hpp"

namespace scalar_sort {

/// Heads over one context, as numbers: scalars (head, position), vectors (head, position, feature). width = 0: scalar
/// heads.
struct heads_in_context {
  index_t heads = 1, queries = 0, keys = 0, width = 0, value_width = 1;
  numbers sort_q, sort_k, q, k, v;
  numbers tau;  ///< per head
};

/// Fitted heads over a stretch, queried by its last `queries` positions.
heads_in_context in_context(projections const& p, stretch const& s, index_t queries);

/// One row of a window, beside the same row over all keys.
struct window_row {
  double captured;         ///< the share of the row's weight that lies in the window
  double error;            ///< |out - exact|, Euclidean norm
  double exact;            ///< |exact|
  double promised;         ///< |out - exact| at most, as the row's report has it
  double bound;            ///< the share outside is at most this, by counts and nearest distances of the two ends
  index_t scored, summed;  ///< keys whose score was computed, whose value was read
  double sort_q;
};

using any_window =
    std::variant<attune::line::nearest, attune::line::half, attune::line::radius, attune::line::certified>;

/// A sorted cache of these keys, and every query's row over all of them.
class window_study {
 public:
  explicit window_study(heads_in_context what);
  ~window_study();
  window_study(window_study&&) noexcept;

  /// Head by head, query by query.
  std::vector<window_row> rows(any_window const& w) const;
  heads_in_context const& what() const { return what_; }
  /// Keys per unit of length around x: `among` over the stretch that reaches the among-th nearest key of that head.
  double density(index_t head, double x, index_t among = 16) const;

 private:
  struct decoded_rows;
  decoded_rows run(any_window const& w) const;

  heads_in_context what_;
  struct cache;
  std::unique_ptr<cache> cache_;
  std::unique_ptr<decoded_rows> all_;
};

/// The rows of several studies, one after the other.
std::vector<window_row> rows_of(std::vector<window_study> const& studies, any_window const& w);

/// Means over rows.
struct window_summary {
  double captured = 0;
  double error = 0;   ///< root of sum error^2 / sum exact^2
  double scored = 0;  ///< keys
};
window_summary summary(std::span<window_row const> rows);

}  // namespace scalar_sort
