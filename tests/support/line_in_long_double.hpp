// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators on a line in long double: by levels of rectangles, whatever the executor in double does.
#pragma once

#include <vector>

#include <attune/line.hpp>

#include "line_problem.hpp"

namespace attune::test {

/// Outputs, lse where it exists, and gradients by q, k and v.
struct long_double_results {
  std::vector<long double> out, lse, q, k, v;
};

/// Of line::laplacian and line::sliced_relu.
template <class Op>
long_double_results in_long_double(Op const& op, line_problem const& p, bool with_gradients = false) {
  using real = long double;
  using namespace line::detail;
  using sums = xsimd::default_arch;
  auto const as = [](std::vector<double> const& x) { return std::vector<real>(x.begin(), x.end()); };
  auto const q = as(p.q), k = as(p.k), v = as(p.v), by = as(p.by), by_lse = as(p.by_lse);
  long_double_results r{std::vector<real>(by.size()), std::vector<real>(q.size()), std::vector<real>(q.size()),
                        std::vector<real>(k.size()), std::vector<real>(v.size())};
  arrays<real> const in{tensor(q, p.query_side()), tensor(k, p.key_side()), tensor(v, p.value_side())};
  results<real> to{tensor(r.out, p.query_side(p.width)), {}};
  result_cotangents<real> d{tensor<real const>(by, p.query_side(p.width)), {}};
  if (Op::has_lse) to.lse = tensor(r.lse, p.query_side()), d.lse = tensor<real const>(by_lse, p.query_side());
  gradient_views<real> const views{tensor(r.q, p.query_side()), tensor(r.k, p.key_side()), tensor(r.v, p.value_side())};
  extents const e{p.batch, p.heads, p.key_heads, p.value_heads, p.queries, p.keys, p.width};
  problem_shape shape_of;
  shape_of.batch = p.batch, shape_of.heads = p.heads, shape_of.queries = p.queries, shape_of.keys = p.keys;
  shape_of.set_offset(p.keys - p.queries);
  auto const sees = [&](index_t b, index_t h) { return sight(op.mask, shape_of, b, h); };
  if constexpr (requires { op.tau; }) {
    run_laplacian<real, sums>(op.tau, sees, in, e, to, {});
    if (with_gradients) run_laplacian_vjp<real, sums>(op.tau, sees, in, e, d, views, {});
  } else {
    constexpr divisor divided_by = decltype(op.dense())::normalizer_policy::traits.divided_by;
    run_sliced_relu<real, sums>(divided_by, sees, in, e, to, {});
    if (with_gradients) run_sliced_relu_vjp<real, sums>(divided_by, sees, in, e, d, views, {});
  }
  return r;
}

}  // namespace attune::test
