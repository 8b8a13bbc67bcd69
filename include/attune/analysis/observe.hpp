// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   watch.step(observe(softmax_attention(mask::causal{}), {.q = Q, .k = K, .v = V}));
//
// Readings for a monitor from the queries, keys and values of a step, for any operator. The reference executor computes
// the weights of the rows.
#pragma once

#include <algorithm>

#include <attune/analysis/monitor.hpp>
#include <attune/exec/reference/statistics.hpp>

namespace attune::analysis {

/// The rows and weights to observe in a step.
struct observation {
  index_t rows = 32;      ///< queries of each head and batch, evenly spaced, including the last one; 0: all
  index_t selected = 10;  ///< the N of N_s / N: the N largest weights; rows that see at most N keys have no N_s
};

namespace detail {

/// The mean of the finite numbers; NaN if there are none.
class mean_of_finite {
 public:
  void add(double x) {
    if (!std::isfinite(x)) return;
    sum_ += x;
    ++count_;
  }
  double value() const { return count_ == 0 ? std::nan("") : sum_ / double(count_); }

 private:
  double sum_ = 0;
  index_t count_ = 0;
};

/// The standard deviation of the finite logits of a row; NaN for fewer than two.
template <class T>
double spread_of_logits(dense_head<T> const& row, index_t keys) {
  double mean = 0, squares = 0;  // Welford: logits may be far from 0
  index_t count = 0;
  for (index_t j = 0; j < keys; ++j) {
    double const a = double(row.logits(0, j));
    if (!row.visible(0, j) || !std::isfinite(a)) continue;
    ++count;
    double const away = a - mean;
    mean += away / double(count);
    squares += away * (a - mean);
  }
  return count < 2 ? std::nan("") : std::sqrt(squares / double(count));
}

/// The position of row n of `count` among `queries`: evenly spaced; the last row is the last query.
inline index_t observed_row(index_t n, index_t count, index_t queries) { return (n + 1) * queries / count - 1; }

}  // namespace detail

/// Readings of every head: means over batches and observed rows. A row without a value for a reading is skipped in its
/// mean.
///   entropy      of w / sum w, divided by log K, K the number of keys that the row sees; not if a weight is negative,
///                nor for K = 1
///   separable    N_s / N with the head's values (before a value gate) as x; not for K <= N
///   temperature  1 / sigma, sigma the standard deviation of the row's logits. Logits with deviation 1 at this T are
///                the row's logits.
///   sink_share   the ground weight, or the weight of key 0 if its mean is larger
/// Shapes:      q (B, H, Lq, D), k (B, Hk, Lk, D), v (B, Hv, Lk, Dv). A training step has Lq = Lk; a decoding step has
///              Lq = 1 and all keys so far. H must match the monitor.
/// Errors:      attune::error names argument, value and expectation.
/// Complexity:  O(B H rows Lk (D + Dv)) operations of T, memory O(Lk (D + Dv)).
template <class T, class Op>
std::vector<head_reading> observe(reference<T> exec, Op const& op, inputs<Op, any_tensor> const& in,
                                  observation const& what = {}) {
  detail::require_count("analysis::observe", "rows", what.rows, 0, (std::numeric_limits<index_t>::max)());
  detail::require_count("analysis::observe", "selected", what.selected, 1, (std::numeric_limits<index_t>::max)());
  problem_shape const p =
      attune::detail::checked_problem("analysis::observe", op, in, attune::detail::output_shape(in));
  index_t const rows = what.rows == 0 ? p.queries : (std::min)(what.rows, p.queries);
  std::vector<head_reading> readings;
  for (index_t h = 0; h < p.heads; ++h) {
    detail::mean_of_finite entropy, separable, sigma, first, ground;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t n = 0; n < rows; ++n) {
        dense_head<T> const row = forward_row(exec, op, in, b, h, detail::observed_row(n, rows, p.queries));
        std::vector<double> w, v;  // of the visible keys
        for (index_t j = 0; j < p.keys; ++j) {
          if (!row.visible(0, j)) continue;
          w.push_back(double(row.weights(0, j)));
          for (index_t d = 0; d < p.value_width; ++d)
            v.push_back(double(attune::detail::read<T>(in.v, b, p.group(h, p.value_heads), j, d)));
        }
        if (w.empty()) continue;
        auto const keys = count_of(w);
        if (keys > 1) entropy.add(shape_of(w).normalized_entropy / std::log(double(keys)));
        if (keys > what.selected) separable.add(separable_share(w, points<double>(v, p.value_width), what.selected));
        sigma.add(detail::spread_of_logits(row, p.keys));
        first.add(row.visible(0, 0) ? double(row.weights(0, 0)) : 0.0);
        ground.add(row.ground_weight.size() > 0 ? double(row.ground_weight(0)) : 0.0);
      }
    readings.push_back(
        {entropy.value(), separable.value(), 1 / sigma.value(), std::fmax(ground.value(), first.value())});
  }
  return readings;
}

/// The same in double.
template <class Op>
std::vector<head_reading> observe(Op const& op, inputs<Op, any_tensor> const& in, observation const& what = {}) {
  return observe(reference<double>{}, op, in, what);
}

}  // namespace attune::analysis
