// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   out_i = sum_j w_ij v_j
#pragma once

#include <attune/policies/value_term/concepts.hpp>

namespace attune::value_term {

/// No value term: a key adds its value alone.
struct none {
  static constexpr auto role = policy_role::value_term;
};

}  // namespace attune::value_term
