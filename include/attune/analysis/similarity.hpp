// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   softmax(<q, k> / (T sqrt D)) = softmax(-|q - k|^2 / (2 sigma^2)),   sigma^2 = T sqrt D,   for keys of equal norm
//
// Dot products as Gaussian kernels, and products of experts.
#pragma once

#include <attune/analysis/weights.hpp>

namespace attune::analysis {

/// sigma^2 = T sqrt D: the bandwidth that corresponds to a temperature.
template <class T>
T rbf_bandwidth(T const& temperature, index_t width) {
  return temperature * math::sqrt(T(double(width)));
}

/// <q, k_j> / scale
template <numbers Q, class T = number_of<Q>>
std::vector<T> dot_scores(Q const& q, points<T> const& keys, T const& scale) {
  detail::require_length("analysis::dot_scores", "q", count_of(q), keys.width());
  std::vector<T> s;
  for (index_t j = 0; j < keys.count(); ++j) s.push_back(dot(q, keys[j]) / scale);
  return s;
}
/// -|q - k_j|^2 / (2 sigma2)
template <numbers Q, class T = number_of<Q>>
std::vector<T> rbf_scores(Q const& q, points<T> const& keys, T const& sigma2) {
  detail::require_length("analysis::rbf_scores", "q", count_of(q), keys.width());
  std::vector<T> s;
  for (index_t j = 0; j < keys.count(); ++j) s.push_back(-squared_distance(q, keys[j]) / (T(2) * sigma2));
  return s;
}

/// e^(<q, k> / sqrt D) = similarity * magnitude, with e^(-|q - k|^2 / (2 sqrt D)) and e^((|q|^2 + |k|^2) / (2 sqrt D)).
/// Source: Scalar Sort, related work (implicit kernel attention).
template <class T>
struct implicit_kernel {
  std::vector<T> similarity,  ///< e^(-|q - k_j|^2 / (2 sqrt D)), per key
      magnitude;              ///< e^((|q|^2 + |k_j|^2) / (2 sqrt D)), per key
};
/// Both factors for one query and all keys. Throws attune::error unless q has the width of the keys.
template <numbers Q, class T = number_of<Q>>
implicit_kernel<T> factors_of(Q const& q, points<T> const& keys) {
  implicit_kernel<T> f;
  T const sigma2 = rbf_bandwidth(T(1), keys.width());
  for (T const& s : rbf_scores(q, keys, sigma2)) f.similarity.push_back(math::exp(s));
  T const own = dot(q, q);
  for (index_t j = 0; j < keys.count(); ++j)
    f.magnitude.push_back(math::exp(T((own + dot(keys[j], keys[j])) / (T(2) * sigma2))));
  return f;
}

/// p_j q_j / sum p q: equal to the softmax of the summed scores if p and q are softmaxes.
/// Throws attune::error where no key has weight in both.
template <numbers P, numbers Q, class T = number_of<P>>
std::vector<T> product_of_experts(P const& p, Q const& q) {
  detail::require_length("analysis::product_of_experts", "q", count_of(q), count_of(p));
  T const total = dot(p, q);
  detail::require_positive("analysis::product_of_experts", "sum p q", total);
  std::vector<T> r;
  auto b = std::ranges::begin(q);
  for (T const& x : p) r.push_back(x * *b++ / total);
  return r;
}

}  // namespace attune::analysis
