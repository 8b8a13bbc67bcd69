// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// FIRE (Li et al. 2023): an MLP of a position, whose weights `bind` reads from tables.
#pragma once

#include <array>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: fire]
/// FIRE: b(i, j) = f(log(1 + c (i - j)) / log(1 + c max(i, L))), with an MLP f of one hidden layer.
struct fire {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  static constexpr int width = 32;
  table hidden;  // rows: weights into the hidden layer, its biases, weights out of it
  parameter c = 1, least = 16, bias = 0;
  static constexpr auto parameters() {
    return std::array{listed("c", &fire::c, domain::positive), listed("least", &fire::least, domain::positive),
                      listed("bias", &fire::bias)};
  }
  static constexpr auto tables() {
    return std::array{listed("hidden", &fire::hidden, table_width::any, table_use::bind)};
  }
  template <class T>
  struct bound {
    table_entries<T> in, shift, out;
    T c, position, inverse, bias;
    ATTUNE_HD T score(key<T> const& k) const {
      T const x = math::log1p(T(c * math::abs(T(position - k.position)))) * inverse;
      T sum = bias;
      for (int n = 0; n < width; ++n) sum = sum + out[n] * math::larger(T(in[n] * x + shift[n]), T(0));
      return sum;
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    T const longest = math::larger(r.position, r(least));
    return {r.entries(hidden, 0),
            r.entries(hidden, 1),
            r.entries(hidden, 2),
            r(c),
            r.position,
            T(1) / math::log1p(T(r(c) * longest)),
            r(bias)};
  }
};
// [/snippet]

/// tanh(w_0 s) + w_1 s: a score map with a table for each head.
struct bent {
  static constexpr auto role = policy_role::score_map;
  table w;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("w", &bent::w, table_width::any, table_use::bind)}; }
  template <class T>
  struct bound {
    table_entries<T> w;
    ATTUNE_HD T map(T const& s) const { return math::tanh(T(w[0] * s)) + w[1] * s; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.entries(w)};
  }
};

}  // namespace attune::test
