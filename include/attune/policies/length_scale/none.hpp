// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a = s
#pragma once

#include <attune/policies/concepts.hpp>

namespace attune::length_scale {

/// The scores unchanged, for any number of keys.
struct none {
  static constexpr auto role = policy_role::length_scale;
  static constexpr length_scale_traits traits{};

  template <class T>
  struct bound {
    ATTUNE_HD T scale(T const& s) const { return s; }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

}  // namespace attune::length_scale
