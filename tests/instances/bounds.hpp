// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The certified error bounds of a run-time problem. Out, lse and ground weight: certify::error_bound. It has none of
// thresholds and of moving averages: these follow here from the same errors of logits and parameters.
#pragma once

#include <cmath>
#include <vector>

#include <attune/certify/error_bound.hpp>

#include "views.hpp"

namespace attune::instances::detail {

/// A threshold increases with every logit, so it lies between those of all logits moved down and up by their errors.
template <class Op>
class threshold_bounds : certify::detail::row_reader<Op> {
  using base = certify::detail::row_reader<Op>;
  using base::b_, base::delta_, base::eps_, base::h_, base::i_, base::op_, base::p_, base::seen_;

 public:
  threshold_bounds(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p, certify::storage format)
      : base(op, in, p, format) {}

  double operator()(index_t b, index_t h, index_t i) {
    b_ = b, h_ = h, i_ = i;
    auto const at = attune::detail::scalar_row<double>(p_, op_.mask, b, h, i);
    auto const normalizer = op_.bind(at).normalizer;
    base::read_logits(op_.bind(attune::detail::scalar_row<certify::rounded>(p_, op_.mask, b, h, i)));
    auto const exact = attune::detail::weigh_candidates(normalizer, seen_);
    auto const size = certify::detail::magnitude;
    double const shared = 4 + size(exact.level.reference) + size(exact.level.level);
    auto const moved = [&](double sign) {
      auto row = seen_;
      for (std::size_t n = 0; n < row.logits.size(); ++n)
        row.logits[n] += sign * (delta_[n] + eps_ * (shared + size(row.logits[n])));
      return std::fabs(attune::detail::weigh_candidates(normalizer, row).threshold - exact.threshold);
    };
    return std::fmax(moved(1), moved(-1)) + eps_ * (4 + 4 * size(exact.threshold));
  }
};

template <class Op>
bounds bounds_of(Op const& op, problem const& p, backend of) {
  loaded<double> const from(p, false);
  auto const in = view_inputs<Op, any_tensor>(from, p);
  certify::storage const format = of == backend::cpu_float ? certify::storage::fp32 : certify::storage::fp64;
  double const eps = 2 * certify::format_of(format).unit;
  auto const certified = certify::error_bound(op, in, format);
  problem_shape const& s = certified.extents;
  auto const of_list = [&](std::vector<certify::bounded_number> const& list, index_t width) {
    array a;
    if (list.empty()) return a;
    a.shape = {s.batch, s.heads, s.queries, width};
    for (certify::bounded_number const& x : list) a.data.push_back(x.bound);
    return a;
  };
  bounds to;
  to.out = of_list(certified.out, s.value_width);
  to.lse = of_list(certified.lse, 1);
  to.ground_weight = of_list(certified.ground_weight, 1);
  if constexpr (Op::has_threshold) {
    to.threshold.shape = {s.batch, s.heads, s.queries, 1};
    threshold_bounds<Op> row(op, in, s, format);
    for (index_t b = 0; b < s.batch; ++b)
      for (index_t h = 0; h < s.heads; ++h)
        for (index_t i = 0; i < s.queries; ++i) to.threshold.data.push_back(row(b, h, i));
  }
  // An average of sigmoids or of lines x / 10 + 1/2, which cancel.
  to.average = average_of<double>(op);
  double const count = double(s.batch * s.queries);
  for (double& x : to.average.data) x = eps * ((count / 2 + 4) * std::fabs(x) + 2);
  return to;
}

}  // namespace attune::instances::detail
