// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   J_ij = dw_i / dl_j   of any normalizer
//
// Computed by running the policy's own source on dual numbers: exact, in any scalar, for your policies as for attune's.
// Also bounds for weights F(l) / sum F(l).
#pragma once

#include <attune/analysis/matrix.hpp>
#include <attune/analysis/weights.hpp>

namespace attune::analysis {

/// (L, L): row i holds the derivatives of weight i. L rows of dual numbers: O(L) times the cost of the normalizer. At a
/// kink the derivative follows the rules of gradients (docs/reference/contracts.md).
template <class Normalizer, numbers R, class T = number_of<R>>
matrix<T> jacobian(Normalizer const& normalizer, R const& logits) {
  using D = dual<T, 1>;
  auto const n = count_of(logits);
  matrix<T> j(n, n);
  std::vector<D> row(std::ranges::begin(logits), std::ranges::end(logits));
  for (index_t c = 0; c < n; ++c) {
    row[std::size_t(c)].tangent[0] = T(1);
    std::vector<D> const w = weights(normalizer, row);
    for (index_t r = 0; r < n; ++r) j(r, c) = w[std::size_t(r)].tangent[0];
    row[std::size_t(c)].tangent[0] = T(0);
  }
  return j;
}

/// A row of weights F(l) / sum F(l), and bounds of its Jacobian J = (I - alpha 1^T) diag(F') / sum F.
template <class T>
struct general_row {
  std::vector<T> alpha;  ///< the weights F(l) / sum F(l)
  T least,               ///< min F over the row
      greatest,          ///< max F over the row
      steepest;          ///< max |F'| over the row
  T total;               ///< sum F

  /// steepest sqrt(L) |alpha| / sum F: I - alpha 1^T is an oblique projector of norm sqrt(L) |alpha|
  T bound() const { return steepest * math::sqrt(T(double(alpha.size()))) * norm(alpha) / total; }
  /// steepest greatest / (L least^2): weaker, from the extremes only
  T bound_by_extremes() const { return steepest * greatest / (T(double(alpha.size())) * least * least); }
  /// steepest (1 / (L least) + greatest / (L least)^2): Lemma 2 as printed. It bounds every entry, not the norm.
  T entry_bound() const {
    T const scaled = T(double(alpha.size())) * least;
    return steepest * (T(1) / scaled + greatest / (scaled * scaled));
  }
  /// The printed minimum with sqrt 2. It bounds |alpha - alpha'|, not a derivative.
  T printed() const { return math::smaller(entry_bound(), math::sqrt(T(2))); }
};

/// F as for normalizer::generic: template <class T> static T map(T const&), positive on these logits; F' by dual
/// numbers. Throws attune::error where F is not positive. Source: Limits of Normalization, (3) and Lemma 2.
template <class F, numbers R, class T = number_of<R>>
general_row<T> general(R const& logits) {
  general_row<T> g{{}, T(0), T(0), T(0), T(0)};
  for (T const& l : logits) {
    dual<T, 1> const f = F::map(dual<T, 1>::variable(l, 0));
    detail::require_positive("analysis::general", "F(l)", f.value);
    bool const first = g.alpha.empty();
    g.least = first ? f.value : math::smaller(g.least, f.value);
    g.greatest = math::larger(g.greatest, f.value);
    g.steepest = math::larger(g.steepest, math::abs(f.tangent[0]));
    g.total = g.total + f.value;
    g.alpha.push_back(f.value);
  }
  for (T& a : g.alpha) a = a / g.total;
  return g;
}

/// g(T, eps) = |w((l + eps u) / T) - w(l / T)| / eps with u = direction / |direction|. For softmax at most
/// finite_difference_bound. Throws attune::error unless T, eps > 0 and the direction is not 0. Source: Limits of
/// Normalization, section 3.3.
template <class Normalizer, numbers R, numbers U, class T = number_of<R>>
T finite_difference(Normalizer const& normalizer, R const& logits, U const& direction, T const& temperature,
                    T const& eps) {
  detail::require_length("analysis::finite_difference", "direction", count_of(direction), count_of(logits));
  detail::require_positive("analysis::finite_difference", "eps", eps);
  T const length = norm(direction);
  detail::require_positive("analysis::finite_difference", "|direction|", length);
  std::vector<T> moved;
  auto u = std::ranges::begin(direction);
  for (T const& l : logits) moved.push_back(l + eps * (*u++ / length));
  return distance(weights(normalizer, tempered(moved, temperature)),
                  weights(normalizer, tempered(logits, temperature))) /
         eps;
}

}  // namespace attune::analysis
