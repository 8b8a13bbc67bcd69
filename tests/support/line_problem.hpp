// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random problems on a line of keys, and what the operators of attune/sorted/ make of them.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <attune/sorted/problem.hpp>

namespace attune::test {

/// How scalars lie.
enum class lie { normal, clustered, equal, tied, heavy, far };

struct line_problem {
  index_t batch = 1, heads = 1, key_heads = 1, value_heads = 1, queries = 1, keys = 1, width = 1;
  std::vector<double> q, k, v, by, by_lse, tau;

  shape query_side(index_t f = 1) const { return {batch, heads, queries, f}; }
  shape key_side() const { return {batch, key_heads, keys, 1}; }
  shape value_side() const { return {batch, value_heads, keys, width}; }
  sorted::arrays<double> arrays() const {
    return {tensor(q, query_side()), tensor(k, key_side()), tensor(v, value_side())};
  }
  sorted::cotangents<double> cotangents() const {
    return {tensor(by, query_side(width)), tensor(by_lse, query_side())};
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

template <class Op>
line_results sorted_results(Op const& op, line_problem const& p, bool with_lse, bool with_tau) {
  line_results r(p);
  auto by = p.cotangents();
  sorted::results<double> to{tensor(r.out, p.query_side(p.width)), tensor(r.lse, p.query_side())};
  sorted::gradients<double> d{tensor(r.q, p.query_side()), tensor(r.k, p.key_side()), tensor(r.v, p.value_side()),
                              tensor(r.tau, shape{1, p.heads, 1, 1})};
  if (!with_lse) by.lse = {}, to.lse = {};
  if (!with_tau) d.tau = {};
  sorted::forward(op, p.arrays(), to);
  sorted::vjp(op, p.arrays(), by, d);
  return r;
}

inline double largest(std::vector<double> const& x) {
  double m = 0;
  for (double e : x) m = std::fmax(m, std::fabs(e));
  return m;
}
/// Doubles as numbers of type T, and the outputs of an operator on them.
template <class T, class Op>
std::vector<T> outputs_in(Op const& op, line_problem const& p) {
  auto const as = [](std::vector<double> const& x) { return std::vector<T>(x.begin(), x.end()); };
  auto const q = as(p.q), k = as(p.k), v = as(p.v);
  std::vector<T> out(std::size_t(p.query_side(p.width).size()));
  sorted::forward<T>(op, {tensor(q, p.query_side()), tensor(k, p.key_side()), tensor(v, p.value_side())},
                     {tensor(out, p.query_side(p.width)), {}});
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
