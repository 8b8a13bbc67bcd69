// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   |p(K_g q) - p(K_h q)| <= |K_g - K_h|_op |q| / (2 T sqrt D)
//
// The cost to a head of reading another head's keys and values: from MHA to GQA to MQA.
#pragma once

#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/similarity.hpp>

namespace attune::analysis {

/// How far the weights of one query move when its head reads the keys of its group, and two bounds of this distance.
template <class T>
struct grouping_drift {
  T drift;          ///< |p~ - p|, of softmax(K q / (T sqrt D))
  T by_logits;      ///< |z~ - z| / (2 T)
  T by_operator;    ///< |K_g - K_h|_op |q| / (2 T sqrt D); the printed bounds of both are twice as large
  T operator_norm;  ///< |K_g - K_h|_op
};

/// a - b as a matrix. Throws attune::error unless both have the same number of vectors and the same width.
template <class T>
matrix<T> matrix_difference(points<T> const& a, points<T> const& b) {
  detail::require_length("analysis::matrix_difference", "b", b.count(), a.count());
  detail::require_length("analysis::matrix_difference", "width of b", b.width(), a.width());
  matrix<T> m(a.count(), a.width());
  for (index_t i = 0; i < a.count(); ++i)
    for (index_t d = 0; d < a.width(); ++d) m(i, d) = a[i][std::size_t(d)] - b[i][std::size_t(d)];
  return m;
}

/// Compares the weights of query q for its own keys with those for its group's keys. drift <= by_logits <= by_operator.
/// Source: Why Softmax, "From single head to MHA and GQA"; the factor 1/2 is our own (spectrum.hpp).
template <numbers Q, class T = number_of<Q>>
grouping_drift<T> drift_of_grouping(Q const& q, points<T> const& own, points<T> const& shared, T const& temperature) {
  T const root = math::sqrt(T(double(own.width()))), two(2);
  std::vector<T> const z = dot_scores(q, own, root), other = dot_scores(q, shared, root);
  T const norm_of_difference = spectral_norm(matrix_difference(shared, own));
  return {distance(softmax(other, temperature), softmax(z, temperature)), distance(other, z) / (two * temperature),
          norm_of_difference * norm(q) / (two * temperature * root), norm_of_difference};
}

/// |out~ - out| <= |V_h|_op |p~ - p| + |V_g - V_h|_op |p~|: heads of a group also share the values. `drift` = |p~ - p|,
/// `norm` = |p~|. Source: our own; the paper's bound omits the values.
template <class T>
T output_drift_bound(points<T> const& own_values, points<T> const& shared_values, T const& drift, T const& norm) {
  return spectral_norm(matrix_of(own_values)) * drift +
         spectral_norm(matrix_difference(shared_values, own_values)) * norm;
}

}  // namespace attune::analysis
