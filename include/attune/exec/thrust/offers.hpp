// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   exec_thrust::offers      the calls of thrust_on(policy), without Thrust
#pragma once

#include <attune/calls/executor.hpp>

namespace attune::exec_thrust {

/// Finds the functions that compute rows.
struct engine {};

/// The calls.
inline constexpr call_table offers = [] {
  call_table x;
  x.forward = x.vjp = every_operator;
  x.forward_and_save = x.statistics = without(every_operator, &offer::folds, &offer::mixtures);
  x.results = result_place::returned;
  return x;
}();

}  // namespace attune::exec_thrust
