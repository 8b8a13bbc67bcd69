// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   |diag(p) - p p^T| / T = lambda / T,   lambda the largest root of  sum p_i^2 / (p_i - lambda) = 1
//
// Norms of the Jacobian of softmax from the weights alone: no matrix, no eigenvalue solver, and full relative accuracy
// for rows close to one-hot.
#pragma once

#include <algorithm>

#include <attune/analysis/numbers.hpp>

namespace attune::analysis {

/// sum_{j != i} p_j for every i: 1 - p_i for weights that sum to 1, without cancellation.
template <numbers R, class T = number_of<R>>
std::vector<T> complements(R const& p) {
  auto const n = std::size_t(count_of(p));
  T const* const w = std::ranges::data(p);
  std::vector<T> c(n, T(0));
  T before(0), after(0);
  for (std::size_t i = 0; i < n; ++i) {
    c[i] = c[i] + before;
    c[n - 1 - i] = c[n - 1 - i] + after;
    before = before + w[i];
    after = after + w[n - 1 - i];
  }
  return c;
}

/// The largest eigenvalue of diag(p) - p p^T, p >= 0 with sum 1. O(L) per bit; 0 for a single key.
/// By interlacing it lies between the two largest weights p1 >= p2. With lambda = p2 + t the equation is
///   (lambda - p1 (1 - p1)) / (p1 - lambda) = sum over the others of p_i^2 / (lambda - p_i).
/// It contains only differences of weights. Its left side minus its right side rises from -inf to +inf.
template <numbers R, class T = number_of<R>>
T largest_eigenvalue(R const& p) {
  std::vector<T> w(std::ranges::begin(p), std::ranges::end(p));
  T const zero(0), two(2);
  if (w.size() < 2) return zero;
  std::nth_element(w.begin(), w.begin() + 1, w.end(), [](T const& a, T const& b) { return a > b; });
  if (w[0] < w[1]) std::swap(w[0], w[1]);
  T const first = w[0], second = w[1], gap = first - second;
  if (!(gap > zero)) return first;
  T rest(0);
  for (std::size_t i = w.size() - 1; i > 0; --i) rest = rest + w[i];
  T const product = first * rest;  // p1 (1 - p1)
  T low = math::larger(T(product - second), zero), high = gap;
  for (int bit = 0; bit < 2000; ++bit) {
    T const t = (low + high) / two;
    if (!(t > low) || !(t < high) || high - low <= scalar<T>::epsilon() * (second + low)) break;
    T f = ((second - product) + t) / (gap - t);
    for (std::size_t i = 1; i < w.size(); ++i) f = f - w[i] * w[i] / (t + (second - w[i]));
    (f < zero ? low : high) = t;
  }
  return second + (low + high) / two;
}

/// The sensitivity of softmax(l / T) to its logits, as norms of J = (diag(p) - p p^T) / T.
template <class T>
struct softmax_sensitivity {
  T spectral,         ///< |J|_2: the largest singular value
      frobenius,      ///< |J|_F: root of the sum of squares
      largest_entry;  ///< max |J_ij|
  T row_bound;        ///< max_i 2 p_i (1 - p_i) / T: Gershgorin; spectral <= row_bound <= bound
  T bound;            ///< 1 / (2 T): Corollary 3 with a valid constant; attained by two equal logits above all others
  T printed;          ///< min(1 / (4 T), sqrt 2): 1 / (4 T) bounds the largest entry; neither bounds the norm
};

/// p = softmax(l / T). Throws attune::error unless T > 0. O(L) per bit of the result.
/// Source: Limits of Normalization, Corollary 3; why 1 / (2 T): |J u| = Var_p(u) / T <= (max u - min u)^2 / (4 T) for
///         unit u.
template <numbers R, class T = number_of<R>>
softmax_sensitivity<T> sensitivity_of_softmax(R const& p, T const& temperature) {
  detail::require_positive("analysis::sensitivity_of_softmax", "temperature", temperature);
  T const two(2), four(4);
  std::vector<T> const rest = complements(p);
  T squares(0), largest(0);
  std::size_t i = 0;
  std::vector<T> square;
  for (T const& w : p) {
    T const diagonal = w * rest[i++];
    largest = math::larger(largest, diagonal);
    squares = squares + diagonal * diagonal;
    square.push_back(w * w);
  }
  std::vector<T> const others = complements(square);
  for (std::size_t j = 0; j < square.size(); ++j) squares = squares + square[j] * others[j];
  return {largest_eigenvalue(p) / temperature,
          math::sqrt(squares) / temperature,
          largest / temperature,
          two * largest / temperature,
          T(1) / (two * temperature),
          math::smaller(T(T(1) / (four * temperature)), math::sqrt(two))};
}

/// Bound of |p' - p| / |l' - l| for softmax(l / T), |l' - l| >= eps: 1 / (2 T), and sqrt 2 / eps because no two weight
/// vectors are farther apart. Throws attune::error unless T, eps > 0. Source: our own, for Figure 4 of Limits of
/// Normalization.
template <class T>
T finite_difference_bound(T const& temperature, T const& eps) {
  detail::require_positive("analysis::finite_difference_bound", "temperature", temperature);
  detail::require_positive("analysis::finite_difference_bound", "eps", eps);
  return math::smaller(T(T(1) / (T(2) * temperature)), T(math::sqrt(T(2)) / eps));
}

}  // namespace attune::analysis
