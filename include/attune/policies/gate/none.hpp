// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = s
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::gate {

/// No gate. It needs no gate inputs.
struct none {
  static constexpr auto role = policy_role::gate;
  using contraction = contraction::none;

  template <class T>
  struct bound {};
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::gate
