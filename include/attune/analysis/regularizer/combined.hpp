// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   L = lambda_a L_align + lambda_s L_spread + lambda_t L_tau
//
// The complete regularizer of a layer of scalar or hybrid attention, with its gradients.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <attune/analysis/regularizer/alignment.hpp>
#include <attune/analysis/regularizer/spread.hpp>
#include <attune/analysis/regularizer/temperature.hpp>

namespace attune::regularizer {

/// Coefficients and options. A term whose coefficient is 0 is not computed and counts as 0.
template <class T>
struct combination {
  T alignment = T(0),                 ///< lambda_a, of L_align
      spread = T(0),                  ///< lambda_s, of L_spread
      temperature = T(0);             ///< lambda_t, of L_tau
  std::optional<range<T>> over = {};  ///< for the spread term; none: adaptive, per sequence
  regularizer::targets targets = regularizer::targets::endpoints;  ///< for the spread term
};

/// The terms without their coefficients, and the loss.
template <class T>
struct combined_loss {
  T alignment,      ///< L_align
      spread,       ///< L_spread: mean over all sequences of keys
      temperature,  ///< L_tau
      total;        ///< the sum of all terms, each times its coefficient
};

/// Tensors to which gradients of the total are added. Absent ones are not computed.
template <class T>
struct combined_gradients {
  tensor<T> sort_q{},     ///< (B, H, Lq, 1)
      sort_k{};           ///< (B, H', Lk, 1)
  std::span<T> tau = {};  ///< multiply by temperature<T>::slope(x) for the gradient by x
};

/// Shapes:   as in `alignment`; tau has one number per head, or one for all heads.
/// The spread is the mean over (batch, key head) of the spread of each sequence of keys ("within context" in the
/// paper). The paper has one coefficient inside L_tau and one outside; one of them is enough.
/// Errors:   throws attune::error as the three terms do.
/// Source:   Scalar Sort, "Complete regularizer".
template <class W, class Q, class K, class T = detail::number<W>>
combined_loss<T> combined(combination<T> const& c, tensor<W> weights, tensor<Q> sort_q, tensor<K> sort_k,
                          std::span<T const> tau, combined_gradients<T> const& d = {}) {
  combined_loss<T> loss{T(0), T(0), T(0), T(0)};
  detail::require_scalars("regularizer::combined", "sort_k", sort_k);
  if (!(c.alignment == T(0)))
    loss.alignment = alignment(weights, sort_q, sort_k, alignment_gradients<T>{d.sort_q, d.sort_k}, c.alignment);
  if (!(c.spread == T(0))) {
    shape const e = sort_k.extents();
    detail::require_gradient("regularizer::combined", "d.sort_k", d.sort_k, e);
    T const sequences = T(double(e.batch * e.head));
    std::vector<T> keys(std::size_t(e.position)), moved;
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h) {
        for (index_t j = 0; j < e.position; ++j) keys[std::size_t(j)] = sort_k(b, h, j, 0);
        moved.assign(d.sort_k.absent() ? 0 : keys.size(), T(0));
        std::span<T const> const of(keys);
        loss.spread = loss.spread + spread(of, c.over ? *c.over : adaptive_range(of), c.targets, std::span<T>(moved),
                                           T(c.spread / sequences));
        for (std::size_t j = 0; j < moved.size(); ++j)
          d.sort_k(b, h, index_t(j), 0) = d.sort_k(b, h, index_t(j), 0) + moved[j];
      }
    loss.spread = loss.spread / sequences;
  }
  if (!(c.temperature == T(0))) loss.temperature = temperature_penalty(tau, d.tau, c.temperature);
  loss.total = c.alignment * loss.alignment + c.spread * loss.spread + c.temperature * loss.temperature;
  return loss;
}

}  // namespace attune::regularizer
