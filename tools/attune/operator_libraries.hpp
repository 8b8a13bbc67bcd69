// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators as libraries beside the program, one for each preset and entry. Each is built when it is asked for.
#pragma once

#include <filesystem>
#include <string>

#include "problem.hpp"

namespace attune::tool {

/// "softmax_gradient_verdict": the library, and what is built is the target attune_operator_<name>.
std::string library_name(std::string const& preset, entry wanted);

/// The runner that a library has. The command `build`, if there is one, is run first, with the name behind it: it
/// builds the library or finds that it is up to date. Throws usage_error.
runner loaded(std::filesystem::path const& folder, std::string const& name, char const* build);

}  // namespace attune::tool
