// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   <R(i) q_i, R(j) k_j> = Re sum_r q_ir conj(k_jr) e^(i w_r (i - j)) + the product of the other features
//
// Rotary embeddings for loops. Features r and r + R are a complex number, and only the distance i - j turns it.
#pragma once

#include <complex>
#include <vector>

#include "variant.hpp"

namespace variants {

/// The product of query and key, turned by the angular frequencies w.
inline double turned_dot(loop_inputs const& x, loop_row const& row, index_t j, std::vector<double> const& w) {
  auto const [b, h, i, position] = row;
  index_t const pairs = index_t(w.size());
  double sum = 0;
  for (index_t r = 0; r < pairs; ++r) {
    std::complex<double> const q(x.q(b, h, i, r), x.q(b, h, i, r + pairs)), k(x.k(b, h, j, r), x.k(b, h, j, r + pairs));
    sum += std::real(q * std::conj(k) * std::polar(1.0, double(position - j) * w[std::size_t(r)]));
  }
  for (index_t d = 2 * pairs; d < x.width; ++d) sum += x.q(b, h, i, d) * x.k(b, h, j, d);
  return sum;
}

}  // namespace variants
