// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Numbers for whatever parameters, tables and constants a preset has: what tests and tables run every preset with.
#pragma once

#include <cstdint>

#include "catalogue.hpp"
#include "problem.hpp"

namespace attune::tool {

/// In the parameter's domain, and where it does something.
double typical_value(parameter_entry const& p);
/// Rows that a table wants for distances up to 5; `width` is that of queries.
shape typical_extents(preset const& of, table_entry const& t, index_t width);

/// The operator's part of a problem: every parameter and table set.
problem typical_operator(preset const& of, index_t width, std::uint64_t seed);

}  // namespace attune::tool
