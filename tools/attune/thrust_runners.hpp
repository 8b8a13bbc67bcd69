// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

#include "problem.hpp"

namespace attune::tool {

/// runners() with the Thrust executor in the place of the CPU: of a problem's `on` nothing is asked.
std::map<std::string, runner> const& thrust_runners();

}  // namespace attune::tool
