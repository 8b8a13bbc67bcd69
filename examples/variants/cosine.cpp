// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Scaled cosine attention
//   Liu et al., Swin Transformer V2: Scaling Up Capacity and Resolution, 2022, arXiv 2111.09883
//   s_ij = <q_i, k_j> / (|q_i| |k_j| tau) + B_ij,   tau > 0.01, one per head
//
// Your model divides queries and keys by their lengths, a cache stores keys that are divided, and the gradient passes
// through the division in your model. B is a bias that you give, of relative positions in the paper.
#include "shared/variant.hpp"

using namespace attune;

// [snippet: variant]
auto cosine(parameter tau) { return attention(kernel::tempered_dot{tau} + kernel::bias{}); }
// [/snippet]

/// Divides x_i of a head by its length.
void divide_by_length(variants::loop_inputs const& x, field f, index_t h, index_t i) {
  double square = 0;
  for (index_t d = 0; d < x.width; ++d) square += x.of(f, 0, h, i, d) * x.of(f, 0, h, i, d);
  for (index_t d = 0; d < x.width; ++d) x.of(f, 0, h, i, d) /= std::sqrt(square);
}

int main() {
  std::vector<double> const tau{0.07, 0.3};
  std::vector<double> drawn_q, drawn_k;  // as the paper's layer has them
  return variants::run(cosine(per_head(tau)),
                       [&](auto const& x, auto const& row, variants::weights& w) {
                         auto const [b, h, i, position] = row;
                         double const* const q = &drawn_q[std::size_t((h * x.queries + i) * x.width)];
                         for (index_t j = 0; j < x.keys; ++j) {
                           double const* const k = &drawn_k[std::size_t(j * x.width)];
                           double qk = 0, qq = 0, kk = 0;
                           for (index_t d = 0; d < x.width; ++d)
                             qk += q[d] * k[d], qq += q[d] * q[d], kk += k[d] * k[d];
                           w[std::size_t(j)] =
                               qk / std::sqrt(qq * kk) / tau[std::size_t(h)] + x.of(field::bias, b, h, i, j);
                         }
                         variants::softmax(w);
                       },
                       {.model = [&](variants::loop_inputs const& x) {
                         drawn_q = x.tensors[std::size_t(field::q)]->doubles;
                         drawn_k = x.tensors[std::size_t(field::k)]->doubles;
                         for (index_t h = 0; h < x.heads; ++h)
                           for (index_t i = 0; i < x.queries; ++i) divide_by_length(x, field::q, h, i);
                         for (index_t j = 0; j < x.keys; ++j) divide_by_length(x, field::k, 0, j);
                       }});
}
