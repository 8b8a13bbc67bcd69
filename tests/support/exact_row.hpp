// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out = sum_j e^(s_j) v_j / Z,   s_j = c <q, k_j> - (sort_q - sort_k_j)^2 / tau      in 50 digits, key by key
//
// What decode() over a sorted cache is judged by: the textbook formula, without order, blocks or bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>

namespace attune::test {

using exact_number =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;

/// One query and all keys, as stored.
struct exact_problem {
  double sort_q = 0, tau = 1, scale = 1;
  std::vector<double> q;  ///< empty: no vector keys
  std::vector<double> sort_k;
  std::vector<std::vector<double>> v, k;  ///< per key
};

struct exact_row {
  std::vector<exact_number> out;
  exact_number lse;
};

/// Weights below e^-200 of the greatest are left out: together less than n 10^-86.
inline exact_row exactly(exact_problem const& p) {
  using number = exact_number;
  std::size_t const n = p.sort_k.size();
  std::vector<number> s(n);
  for (std::size_t j = 0; j < n; ++j) {
    number const e = number(p.sort_q) - number(p.sort_k[j]);
    number dot = 0;
    for (std::size_t d = 0; d < p.q.size(); ++d) dot += number(p.q[d]) * number(p.k[j][d]);
    s[j] = number(p.scale) * dot - e * e / number(p.tau);
  }
  number const most = *std::max_element(s.begin(), s.end());
  exact_row r{std::vector<number>(p.v[0].size()), 0};
  number z = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (s[j] - most < -200) continue;
    number const w = exp(number(s[j] - most));
    z += w;
    for (std::size_t d = 0; d < r.out.size(); ++d) r.out[d] += w * number(p.v[j][d]);
  }
  for (number& x : r.out) x /= z;
  r.lse = log(z) + most;
  return r;
}

/// |got - exact|, Euclidean.
template <class T>
double distance(exact_row const& exact, std::vector<T> const& got) {
  exact_number sum = 0;
  for (std::size_t d = 0; d < got.size(); ++d) {
    exact_number const e = exact.out[d] - exact_number(double(got[d]));
    sum += e * e;
  }
  return static_cast<double>(exact_number(sqrt(sum)));
}

}  // namespace attune::test
