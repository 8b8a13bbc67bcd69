// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   judged(problem, kind, result)            the verdict
//   errors_of(exact_of(problem), result)     how far it is from the exact result
//
// A drawn kernel before the verdict, and its true errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/verdict.hpp>

#include "defect_grammar.hpp"

namespace attune::test {

template <class Op, class Use>
auto with_call(Op const& op, simulated_problem const& p, Use const& use) {
  return use(op, inputs<Op, any_tensor>{.q = tensor<float const>(p.q, p.of_queries()),
                                        .k = tensor<float const>(p.k, p.of_keys()),
                                        .v = tensor<float const>(p.v, p.of_values())});
}
/// use(operator, inputs) of a problem.
template <class Use>
auto with_call(simulated_problem const& p, Use const& use) {
  return p.causal ? with_call(softmax_attention(mask::causal{}), p, use) : with_call(softmax_attention(), p, use);
}
/// The formats that a kernel promises.
inline certify::precision formats(kernel_kind const& kind) { return {kind.stored, storage::fp32, kind.weights}; }

/// `with_lse`: whether the lse is judged, too.
inline testing::verdict_report judged(simulated_problem const& p, certify::precision const& formats,
                                      simulated_result const& got, bool with_lse = true) {
  std::vector<double> const out(got.out.begin(), got.out.end());
  testing::candidate given(tensor<double const>(out, p.of_queries()), formats.out);
  if (with_lse) given.with_lse(natural_lse(tensor<float const>(got.lse, {p.batch, p.heads, p.queries, 1})));
  testing::verdict_options how;
  how.how = formats;
  return with_call(p, [&](auto const& op, auto const& in) { return testing::verdict(op, in, given, how); });
}
inline testing::verdict_report judged(simulated_problem const& p, kernel_kind const& kind,
                                      simulated_result const& got) {
  return judged(p, formats(kind), got);
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
        index_t const end = p.keys_of(i), kh = h * p.key_heads / p.heads, vh = h * p.value_heads / p.heads;
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
          for (index_t x = 0; x < p.width; ++x) out[std::size_t(x)] += w * p.value(b, vh, j)[x];
        }
        for (double x : out) to.out.push_back(sum > 0 ? x / sum : 0);
        to.lse.push_back(top + std::log(sum));
      }
  return to;
}

/// The plain formula in the storage precision, as FlashAttention's tests have it: each result of a product or softmax
/// is stored.
inline std::vector<float> plain(simulated_problem const& p, storage stored) {
  std::vector<float> to;
  auto const in = [&](float x) { return float(rounded_to(stored, x)); };
  float const scale = float(1 / std::sqrt(double(p.width)));
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        index_t const end = p.keys_of(i), kh = h * p.key_heads / p.heads, vh = h * p.value_heads / p.heads;
        std::vector<float> w, out(std::size_t(p.width), 0);
        float top = -INFINITY, sum = 0;
        for (index_t j = 0; j < end; ++j) {
          float s = 0;
          for (index_t x = 0; x < p.width; ++x) s += in(p.query(b, h, i)[x] * scale) * p.key(b, kh, j)[x];
          w.push_back(in(s));
          top = std::max(top, w.back());
        }
        for (float& x : w) sum += x = std::exp(x - top);
        for (index_t j = 0; j < end; ++j)
          for (index_t x = 0; x < p.width; ++x)
            out[std::size_t(x)] += in(w[std::size_t(j)] / sum) * p.value(b, vh, j)[x];
        for (float x : out) to.push_back(in(x));
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
