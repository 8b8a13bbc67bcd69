// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   v'_j = v_j      o' = o      w'_ij = w_ij
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::gate {

namespace detail {
struct unbound_factor {
  template <class T>
  ATTUNE_HD T factor(T const&) const {
    return T(1);
  }
};
}  // namespace detail

/// No value gate. It needs no input.
struct no_value_factor {
  static constexpr auto role = policy_role::value_gate;
  template <class T>
  ATTUNE_HD detail::unbound_factor bind(row<T> const&) const {
    return {};
  }
};

/// No output gate. It needs no input.
struct no_output_factor {
  static constexpr auto role = policy_role::output_gate;
  template <class T>
  ATTUNE_HD detail::unbound_factor bind(row<T> const&) const {
    return {};
  }
};

/// No weight gate: nothing is multiplied.
struct no_weight_factor {
  static constexpr auto role = policy_role::weight_gate;
  using contraction = contraction::none;
  /// Has no member: nobody calls its factor.
  template <class T>
  struct bound {
    ATTUNE_HD T factor(key<T> const&) const { return T(1); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::gate
