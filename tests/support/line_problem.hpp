// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random problems on a line of keys, and what the operators of attune/line.hpp make of them.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/exec/gradients.hpp>
#include <attune/line/call/call.hpp>

namespace attune::test {

/// How scalars lie.
enum class lie { normal, clustered, equal, tied, heavy, far };

struct line_problem {
  index_t batch = 1, heads = 1, key_heads = 1, value_heads = 1, queries = 1, keys = 1, width = 1;
  std::vector<double> q, k, v, by, by_lse, tau;

  shape query_side(index_t f = 1) const { return {batch, heads, queries, f}; }
  shape key_side() const { return {batch, key_heads, keys, 1}; }
  shape value_side() const { return {batch, value_heads, keys, width}; }
  /// What the algorithms behind the operators take.
  line::detail::arrays<double> arrays() const {
    return {tensor(q, query_side()), tensor(k, key_side()), tensor(v, value_side())};
  }
  template <class Op>
  inputs<Op, tensor<double const>> in() const {
    return {.v = tensor(v, value_side()), .sort_q = tensor(q, query_side()), .sort_k = tensor(k, key_side())};
  }
  template <class Op>
  attune::cotangents<Op, tensor<double const>> cotangents() const {
    attune::cotangents<Op, tensor<double const>> d;
    d.out = tensor(by, query_side(width));
    if constexpr (Op::has_lse) d.lse = tensor(by_lse, query_side());
    return d;
  }
  template <class Op>
  outputs<Op, double> to(std::vector<double>& out, std::vector<double>& lse) const {
    outputs<Op, double> o{.out = tensor(out, query_side(width))};
    if constexpr (Op::has_lse) o.lse = natural_lse<double>(tensor(lse, query_side()));
    return o;
  }
};

inline double draw_scalar(lie how, std::mt19937& random) {
  std::normal_distribution<double> normal;
  switch (how) {
    case lie::clustered:
      return double(random() % 4) * 5 + 1e-3 * normal(random);
    case lie::equal:
      return 0.25;
    case lie::tied:
      return 0.25 * double(random() % 9);
    case lie::heavy:
      return std::sinh(3 * normal(random));
    case lie::far:
      return (random() % 2 != 0 ? 1e3 : -1e3) + normal(random);
    case lie::normal:
      break;
  }
  return normal(random);
}

inline line_problem random_line(lie queries, lie keys, index_t lq, index_t lk, unsigned seed) {
  std::mt19937 random(seed);
  line_problem p;
  p.batch = 2;
  p.heads = 4;
  p.key_heads = 2;
  p.value_heads = 1;
  p.queries = lq;
  p.keys = lk;
  p.width = 5;
  auto const fill = [&](std::vector<double>& x, index_t n, lie how) {
    x.resize(std::size_t(n));
    for (double& e : x) e = draw_scalar(how, random);
  };
  fill(p.q, p.query_side().size(), queries);
  fill(p.k, p.key_side().size(), keys);
  fill(p.v, p.value_side().size(), lie::normal);
  fill(p.by, p.query_side(p.width).size(), lie::normal);
  fill(p.by_lse, p.query_side().size(), lie::normal);
  p.tau = std::vector<double>(4, 0.3);
  p.tau[1] = 1;
  p.tau[2] = 5;
  return p;
}

/// What a call of one of these operators gives, dense arrays.
struct line_results {
  std::vector<double> out, lse, q, k, v, tau;
  explicit line_results(line_problem const& p)
      : out(std::size_t(p.query_side(p.width).size())), lse(p.q.size()), q(p.q.size()), k(p.k.size()), v(p.v.size()),
        tau(p.tau.size()) {}
};

/// On the CPU, or on any executor of double.
template <class Op, class Exec>
line_results results_on(Exec const& exec, Op const& op, line_problem const& p) {
  line_results r(p);
  forward(exec, op, p.in<Op>(), p.to<Op>(r.out, r.lse));
  auto const d = vjp(exec, op, p.in<Op>(), p.cotangents<Op>());
  r.q = d.of(field::sort_q).values, r.k = d.of(field::sort_k).values, r.v = d.of(field::v).values;
  if (!d.parameters.empty()) r.tau = d.parameter("tau").values;
  return r;
}

inline double largest(std::vector<double> const& x) {
  double m = 0;
  for (double e : x) m = std::fmax(m, std::fabs(e));
  return m;
}
/// Doubles as numbers of type T, and the outputs of an operator on them, by the CPU.
template <class T, class Op, class Exec>
std::vector<T> outputs_in(Exec const& exec, Op const& op, line_problem const& p) {
  auto const as = [](std::vector<double> const& x) { return std::vector<T>(x.begin(), x.end()); };
  auto const q = as(p.q), k = as(p.k), v = as(p.v);
  std::vector<T> out(std::size_t(p.query_side(p.width).size()));
  forward(exec, op,
          inputs<Op, tensor<T const>>{.v = tensor<T const>(v, p.value_side()),
                                      .sort_q = tensor<T const>(q, p.query_side()),
                                      .sort_k = tensor<T const>(k, p.key_side())},
          outputs<Op, T>{.out = tensor<T>(out, p.query_side(p.width))});
  return out;
}

/// The largest difference, relative to the largest number; 0 for equal infinities, inf for a NaN.
inline double away(std::vector<double> const& x, std::vector<double> const& y) {
  double worst = 0;
  for (std::size_t n = 0; n < x.size(); ++n) {
    double const d = x[n] == y[n] ? 0 : std::fabs(x[n] - y[n]);
    if (!(d <= worst)) worst = d == d ? d : std::numeric_limits<double>::infinity();
  }
  double const scale = largest(y);
  return worst == 0 ? 0 : worst / std::fmax(scale, 1e-300);
}

}  // namespace attune::test
