// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "condition.hpp"

#include <algorithm>
#include <cmath>

#include <attune/core/math.hpp>

#include "shared/each.hpp"

namespace demo {

magnitudes measure(layer const& l, int threads) {
  magnitudes m{l.length, std::vector<row_magnitudes>(std::size_t(l.heads * l.length)), {}};
  m.causal = m.all;
  double const c = 1 / std::sqrt(double(l.width));
  each(threads, l.heads, [&](index_t h) {
    for (index_t i = 0; i < l.length; ++i) {
      index_t const row = h * l.length + i;
      row_magnitudes so_far;
      for (index_t j = 0; j < l.length; ++j) {
        index_t const key = h * l.length + j;
        float const *const q = l.q.data() + row * l.width, *const gq = l.gate_q.data() + row * l.width;
        float const *const k = l.k.data() + key * l.width, *const gk = l.gate_k.data() + key * l.width,
                           *const v = l.v.data() + key * l.width;
        double product = 0, gate = 0, gate_product = 0, value = 0;
        for (index_t d = 0; d < l.width; ++d) {
          product += std::fabs(double(q[d]) * k[d]);
          gate += double(gq[d]) * gk[d];
          gate_product += std::fabs(double(gq[d]) * gk[d]);
          value = std::max(value, std::fabs(double(v[d])));
        }
        so_far.product = std::max(so_far.product, c * product);
        so_far.gate_product = std::max(so_far.gate_product, gate_product);
        so_far.gate_penalty = std::max(so_far.gate_penalty, attune::math::softplus(-gate));
        so_far.value = std::max(so_far.value, value);
        if (j == i) m.causal[std::size_t(row)] = so_far;
      }
      m.all[std::size_t(row)] = so_far;
    }
  });
  return m;
}

}  // namespace demo
