// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   L_align = 1/(B H Lq Lk) sum_ij stop(w_ij) (q_i - k_j)^2
//   sum_j w_ij (q_i - k_j)^2 = W_i (Var_i + (q_i - E_i[k])^2),   W_i = sum_j w_ij;  E_i and Var_i under w_ij / W_i
//
// Pulls the scalars of pairs with a large weight together. The weights are data: no gradient flows into them.
#pragma once

#include <span>

#include <attune/analysis/regularizer/checks.hpp>

namespace attune::regularizer {

/// One query's share of the alignment loss, and its parts: cost = mass (variance + offset^2).
template <class T>
struct aligned_row {
  T cost;      ///< sum w (q - k)^2
  T mass;      ///< W = sum w; 1 for softmax, less with a sink or a ground
  T offset;    ///< q - E[k]: the distance from the query to the mean attended key
  T variance;  ///< of the attended keys about their mean
};

/// The bias-variance decomposition for a query q over keys with weights w (of the same length). Keys with weight
/// exactly 0 are not read, so keys hidden by a mask may hold anything. With W = 0 every result is 0.
/// Numerics: uses differences to the query, then to the mean, not E[k^2] - E[k]^2. Weights may have any sum. If signed
///           weights sum to nearly 0, mean and variance result from a division by nearly 0.
/// Cost:     two passes over the keys, no memory.
/// Source:   Scalar Sort, "Attention-weighted scalar distance"; the factor W, which the paper omits, is ours.
template <class T>
aligned_row<T> split_alignment(std::span<T const> weights, T const& q, std::span<T const> keys) {
  if (weights.size() != keys.size())
    throw error("regularizer::split_alignment", "keys", attune::detail::text(keys.size(), " elements"),
                attune::detail::text(weights.size(), ", one per weight"));
  aligned_row<T> r{T(0), T(0), T(0), T(0)};
  T moment(0);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    if (weights[j] == T(0)) continue;
    T const e = q - keys[j];
    r.mass = r.mass + weights[j];
    moment = moment + weights[j] * e;
    r.cost = r.cost + weights[j] * (e * e);
  }
  if (r.mass == T(0)) return r;
  r.offset = moment / r.mass;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    if (weights[j] == T(0)) continue;
    T const away = (q - keys[j]) - r.offset;
    r.variance = r.variance + weights[j] * (away * away);
  }
  r.variance = r.variance / r.mass;
  return r;
}

/// Tensors to which gradients are added. Absent ones are not computed.
template <class T>
struct alignment_gradients {
  tensor<T> sort_q{},  ///< (B, H, Lq, 1)
      sort_k{};        ///< (B, H', Lk, 1)
};

/// The alignment loss of all heads, a mean over every pair. As in the paper's code, the divisor includes pairs that a
/// mask hides (their weight is 0). To keep its strength per query, the coefficient of the loss must grow with Lk.
/// Shapes:   weights (B, H, Lq, Lk), sort_q (B, H, Lq, 1), sort_k (B, H', Lk, 1), H a multiple of H'.
/// Gradient: added to `d`, times `by`: 2 by / (B H Lq Lk) sum_j w_ij (q_i - k_j) to q_i, and the negative of each term
///           to k_j.
/// Errors:   throws attune::error if shapes do not fit; then nothing is written.
/// Cost:     O(B H Lq Lk), no memory.
/// Source:   Scalar Sort, "Attention-weighted scalar distance".
template <class W, class Q, class K, class T = detail::number<W>>
T alignment(tensor<W> weights, tensor<Q> sort_q, tensor<K> sort_k, alignment_gradients<T> const& d = {},
            T const& by = T(1)) {
  char const* const name = "regularizer::alignment";
  shape const w = weights.extents();
  index_t const key_heads = sort_k.extents().head;
  detail::require_scalars(name, "sort_q", sort_q);
  detail::require_scalars(name, "sort_k", sort_k);
  detail::require_shape(name, "sort_q", sort_q, {w.batch, w.head, w.position, 1});
  detail::require_shape(name, "sort_k", sort_k, {w.batch, key_heads, w.feature, 1});
  if (w.head % key_heads != 0)
    throw error(name, "sort_k", attune::detail::text(key_heads, " heads"),
                attune::detail::text("a divisor of ", w.head));
  detail::require_gradient(name, "d.sort_q", d.sort_q, sort_q.extents());
  detail::require_gradient(name, "d.sort_k", d.sort_k, sort_k.extents());

  T const pairs = T(double(w.size())), factor = T(2) * by / pairs;
  T loss(0);
  for (index_t b = 0; b < w.batch; ++b)
    for (index_t h = 0; h < w.head; ++h)
      for (index_t i = 0; i < w.position; ++i) {
        index_t const g = h * key_heads / w.head;
        T const q = sort_q(b, h, i, 0);
        T row(0), pull(0);
        for (index_t j = 0; j < w.feature; ++j) {
          T const weight = weights(b, h, i, j);
          if (weight == T(0)) continue;
          T const e = q - sort_k(b, g, j, 0), we = weight * e;
          row = row + we * e;
          pull = pull + we;
          if (!d.sort_k.absent()) d.sort_k(b, g, j, 0) = d.sort_k(b, g, j, 0) - factor * we;
        }
        loss = loss + row;
        if (!d.sort_q.absent()) d.sort_q(b, h, i, 0) = d.sort_q(b, h, i, 0) + factor * pull;
      }
  return loss / pairs;
}

}  // namespace attune::regularizer
