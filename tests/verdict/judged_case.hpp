// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   judged(case, result)     the verdict;     errors_of(exact_of(problem), result)     how far it is from the exact result
//
// A drawn kernel before the verdict, and its true errors.
#pragma once

#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/verdict.hpp>

#include "defect_grammar.hpp"

namespace attune::test {

template <class Op>
testing::verdict_report judged(Op const& op, drawn_case const& c, simulated_result const& got) {
  simulated_problem const& p = c.problem;
  shape const q{p.batch, p.heads, p.queries, p.width}, k{p.batch, p.key_heads, p.keys, p.width},
      rows{p.batch, p.heads, p.queries, 1};
  std::vector<double> const out(got.out.begin(), got.out.end());
  testing::candidate given(tensor<double const>(out, q), c.kind.stored);
  given.with_lse(natural_lse(tensor<float const>(got.lse, rows)));
  inputs<Op, any_tensor> in{
      .q = tensor<float const>(p.q, q), .k = tensor<float const>(p.k, k), .v = tensor<float const>(p.v, k)};
  testing::verdict_options how;
  how.how = certify::precision(c.kind.stored, storage::fp32, c.kind.weights);
  return testing::verdict(op, in, given, how);
}
inline testing::verdict_report judged(drawn_case const& c, simulated_result const& got) {
  return c.problem.causal ? judged(softmax_attention(mask::causal{}), c, got) : judged(softmax_attention(), c, got);
}

/// The exact result, in double.
struct exact_result {
  std::vector<double> out, lse;
};
inline exact_result exact_of(simulated_problem const& p) {
  exact_result to;
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        index_t const end = p.causal ? i + 1 + p.keys - p.queries : p.keys, kh = h * p.key_heads / p.heads;
        std::vector<double> a, out(std::size_t(p.width), 0);
        double top = -INFINITY, sum = 0;
        for (index_t j = 0; j < end; ++j) {
          double s = 0;
          for (index_t x = 0; x < p.width; ++x) s += double(p.query(b, h, i)[x]) * p.key(b, kh, j)[x];
          a.push_back(s / std::sqrt(double(p.width)));
          top = std::fmax(top, a.back());
        }
        for (index_t j = 0; j < end; ++j) {
          double const w = std::exp(a[std::size_t(j)] - top);
          sum += w;
          for (index_t x = 0; x < p.width; ++x) out[std::size_t(x)] += w * p.value(b, kh, j)[x];
        }
        for (double x : out) to.out.push_back(x / sum);
        to.lse.push_back(top + std::log(sum));
      }
  return to;
}

struct errors {
  double rms = 0, most = 0, rms_lse = 0;
};
inline errors errors_of(exact_result const& exact, simulated_result const& got) {
  errors e;
  for (std::size_t n = 0; n < exact.out.size(); ++n) {
    double const r = double(got.out[n]) - exact.out[n];
    e.rms += r * r / double(exact.out.size());
    e.most = std::fmax(e.most, std::fabs(r));
  }
  for (std::size_t n = 0; n < exact.lse.size(); ++n) {
    double const r = double(got.lse[n]) - exact.lse[n];
    e.rms_lse += r * r / double(exact.lse.size());
  }
  e.rms = std::sqrt(e.rms);
  e.rms_lse = std::sqrt(e.rms_lse);
  return e;
}

/// Whether an error is more than `by` times another one; a NaN is.
inline bool grows(double before, double after, double by) { return !(after <= by * before + 1e-30); }
/// Whether a defect moves the result.
inline bool moves(errors const& before, errors const& after) {
  return grows(before.rms, after.rms, 1.5) || grows(before.most, after.most, 2) ||
         grows(before.rms_lse, after.rms_lse, 1.5);
}

}  // namespace attune::test
