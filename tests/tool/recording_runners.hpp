// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators that compute nothing and remember what they were asked: the arguments are what is tested.
#pragma once

#include "problem.hpp"

namespace tool_tests {

/// The last problem that a recording runner was given; the mask's memory is kept beside it.
attune::tool::problem const& last_problem();
/// The last results that the recording judge was given.
attune::tool::handed_back const& last_handed_back();

}  // namespace tool_tests
