// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

#include <map>
#include <string>

#include "problem.hpp"

namespace attune::tool {

/// The presets that are compiled into the program, with all entries.
std::map<std::string, runner> const& runners();

}  // namespace attune::tool
