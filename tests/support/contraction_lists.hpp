// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Kernels and gates that name several contractions, or one that attune's own gates do not name.
#pragma once

#include <tuple>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: list]
/// <q, k>/sqrt(D) + c_i - c_j, where c is a cumulative sum of log forget gates, in .sort_q and .sort_k.
struct forgetting_dot {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot, contraction::scalar_difference>;
  template <class T>
  struct bound {
    T scale;
    ATTUNE_HD T score(T const& product, T const& decay, key<T> const&) const { return scale * product + decay; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};
// [/snippet]

// [snippet: gate_of_any]
/// s exp(c_i - c_j): a gate may name any contraction. With linear weights, this is state-space duality.
struct decay_gate {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::scalar_difference;
  template <class T>
  struct bound {
    ATTUNE_HD T gate(T const& score, T const& decay) const { return score * math::exp(decay); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};
// [/snippet]

/// tanh(sum m q k) values(n) + rate position: two contractions that read tables, one parameter.
struct mixed_kernel {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::metric_dot, contraction::gathered, contraction::gate_dot>;
  table metric, values;
  parameter rate = 0.25;
  static constexpr auto parameters() { return std::tuple{listed("rate", &mixed_kernel::rate)}; }
  static constexpr auto tables() {
    return std::tuple{listed("metric", &mixed_kernel::metric, table_width::query_row),
                      listed("values", &mixed_kernel::values, table_width::one)};
  }
  ATTUNE_HD index_t index(index_t n) const { return n < 0 ? 0 : n < values.rows() ? n : values.rows() - 1; }
  template <class T>
  struct bound {
    T rate, position;
    ATTUNE_HD T score(T const& x, T const& y, T const& z, key<T> const& k) const {
      return math::tanh(x) * y + rate * z + T(0.0625) * (k.position - position);
    }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(rate), r.position};
  }
};
/// s + strength sigmoid(g) b
struct mixed_gate {
  static constexpr auto role = policy_role::gate;
  using contractions = contraction::list<contraction::gate_dot, contraction::given_key_bias>;
  parameter strength = 1;
  static constexpr auto parameters() { return std::tuple{listed("strength", &mixed_gate::strength)}; }
  template <class T>
  struct bound {
    T strength;
    ATTUNE_HD T gate(T const& s, T const& g, T const& b) const { return s + strength * math::sigmoid(g) * b; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r(strength)};
  }
};

/// Weights s: linear attention without a divisor.
struct plain_sum {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  template <class T>
  struct bound {
    ATTUNE_HD T earned(T const& a, T const&) const { return a; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::test
