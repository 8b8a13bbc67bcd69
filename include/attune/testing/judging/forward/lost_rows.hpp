// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   by_exponentials(call)    "exponentials overflow"      by_empty_rows(call)    "rows without keys are NaN"
//
// Rows that a kernel loses as a whole: by overflow, or because they see no key.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include <attune/testing/judging/exponential_range.hpp>
#include <attune/testing/judging/forward/sampled_call.hpp>

namespace attune::testing::detail {

/// Exponentials that are not relative to the largest logit of their row.
template <class Op>
void by_exponentials(sampled_call<Op>& call) {
  if constexpr (Op::has_lse) {
    std::vector<double> lse;
    for (bounded_number const& x : call.bounds.lse) lse.push_back(x.value);
    exponential_range range(std::move(lse), call.formats.arithmetic);
    std::vector<double> const* const numbers[] = {&call.given.out(), &call.given.lse(), &call.given.ground_weight()};
    std::size_t n = 0;
    for (auto const* x : numbers)
      if (!x->empty()) range.see_rows(call.report.elements[n++], *x);
    if (auto const f = range.found(call.how.gate)) call.report.findings.push_back(*f);
  }
}

/// Rows without keys have their own contract (docs/reference/contracts.md). Kernels divide 0 by 0, or give every key
/// the same weight.
template <class Op>
void by_empty_rows(sampled_call<Op>& call) {
  index_t wrong = 0, nan = 0, mean = 0;
  std::size_t n = 0;
  for (index_t b = 0; b < call.p.batch; ++b)
    for (index_t h = 0; h < call.p.heads; ++h)
      for (index_t i = 0; i < call.p.queries; ++i, n += std::size_t(call.p.value_width)) {
        if (mask::count(call.op.mask, call.p.row(b, h, i)) != 0 || call.p.keys == 0) continue;
        for (index_t c = 0; c < call.p.value_width; ++c) {
          std::size_t const at = n + std::size_t(c);
          double const got = call.given.out()[at];
          if (share_of_bound(got, call.bounds.out[at]) <= 1) continue;
          ++wrong;
          nan += std::isnan(got);
          double sum = 0, size = 0;
          for (index_t j = 0; j < call.p.keys; ++j) {
            double const v = call.in.v(b, call.p.group(h, call.p.value_heads), j, c);
            sum += v, size += std::fabs(v);
          }
          mean += std::fabs(got - sum / double(call.p.keys)) <= 0.01 * size / double(call.p.keys);
        }
      }
  // All that is outside its bound is in these rows.
  if (wrong == 0 || call.report.elements[0].outside != wrong) return;
  finding f;
  f.name = nan == wrong    ? "rows without keys are NaN"
           : mean == wrong ? "rows without keys are the mean of all values"
                           : "rows without keys have other numbers";
  f.share = 1;
  f.gain = call.seen.total();
  f.z = 2 * call.how.gate;
  f.estimate = 1;
  call.report.findings.push_back(f);
}

}  // namespace attune::testing::detail
