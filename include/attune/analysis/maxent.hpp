// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   softmax(z / T) = argmax over p of  <p, z> + T H(p),   the maximum is  T log sum e^(z / T)
//
// Attention as an entropic program: the objective, the potential, its derivatives and their bounds.
#pragma once

#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/row_shape.hpp>
#include <attune/analysis/spectrum.hpp>

namespace attune::analysis {

/// <p, z> + T H(p). For p with sum 1 it is smaller than potential(z, T) by T KL(p, softmax(z / T)).
template <numbers P, numbers Z, class T = number_of<Z>>
T gibbs_objective(P const& p, Z const& z, T const& temperature) {
  detail::require_length("analysis::gibbs_objective", "p", count_of(p), count_of(z));
  return dot(p, z) + temperature * entropy(p);
}

/// KL(p, q) = sum p log(p / q); 0 log 0 = 0; +inf where q is 0 and p is not.
template <numbers P, numbers Q, class T = number_of<P>>
T divergence(P const& p, Q const& q) {
  detail::require_length("analysis::divergence", "q", count_of(q), count_of(p));
  T s(0);
  auto b = std::ranges::begin(q);
  for (T const& x : p) {
    T const y = *b++;
    if (x == T(0)) continue;
    s = s + (y == T(0) ? math::infinity<T>() : T(x * math::log(T(x / y))));
  }
  return s;
}

/// T log sum e^(z / T): between max z and max z + T log L; its gradient is softmax(z / T).
template <numbers Z, class T = number_of<Z>>
T potential(Z const& z, T const& temperature) {
  return temperature * log_sum_exp(tempered(z, temperature));
}

/// (diag p - p p^T) / T, p = softmax(z / T): positive semidefinite, with norm at most 1 / (2 T), half of the printed 1
/// / T. softmax(z / T) is 1 / (2 T)-Lipschitz.
template <numbers Z, class T = number_of<Z>>
matrix<T> potential_hessian(Z const& z, T const& temperature) {
  matrix<T> h = jacobian(normalizer::softmax{}, tempered(z, temperature));
  for (index_t r = 0; r < h.rows(); ++r)
    for (index_t c = 0; c < h.columns(); ++c) h(r, c) = h(r, c) / temperature;
  return h;
}

/// The limits of softmax(z / T) as T goes to 0 and to infinity, and bounds of the distance to them.
template <class T>
struct temperature_limits {
  std::vector<T> cold;  ///< equal shares for the largest logits, not the nearest key (that would need equal key norms)
  index_t ties = 0;     ///< number of largest logits
  index_t keys = 0;     ///< L: number of logits
  T gap = T(0);         ///< from the largest logit to the next; +inf if there is none
  T range = T(0);       ///< from the smallest logit to the largest

  /// Bound of the mass outside the largest logits: (L - ties) / ties e^(-gap / T).
  T cold_bound(T const& temperature) const {
    if (ties == keys) return T(0);
    return T(double(keys - ties)) / T(double(ties)) * math::exp(T(-(gap / temperature)));
  }
  /// Bound of |p_j - 1 / L|: (e^(range / T) - 1) / L.
  T hot_bound(T const& temperature) const { return math::expm1(T(range / temperature)) / T(double(keys)); }
};

/// Throws attune::error for no logits. Source: Why Softmax, "Attention as an optimization"; the rates are our own.
template <numbers Z, class T = number_of<Z>>
temperature_limits<T> limits_of(Z const& z) {
  detail::require_count("analysis::limits_of", "the number of logits", count_of(z), 1,
                        (std::numeric_limits<index_t>::max)());
  temperature_limits<T> l;
  l.keys = count_of(z);
  T high = *std::ranges::begin(z), low = high;
  for (T const& x : z) {
    high = math::larger(high, x);
    low = math::smaller(low, x);
  }
  l.range = high - low;
  l.gap = math::infinity<T>();
  for (T const& x : z) {
    if (x == high)
      ++l.ties;
    else
      l.gap = math::smaller(l.gap, T(high - x));
  }
  for (T const& x : z) l.cold.push_back(x == high ? T(T(1) / T(double(l.ties))) : T(0));
  return l;
}

}  // namespace attune::analysis
