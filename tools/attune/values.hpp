// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   --parameter gamma=-2      --parameter logit=0.5,-1      --parameter alpha=alpha.npy      --parameter metric=m.npy
//
// Values of arguments: numbers, lists of numbers, arrays from files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "problem.hpp"

namespace attune::tool {

/// Errors name the argument and its value.
index_t integer(std::string const& argument, std::string const& value);
/// "3,5" or a file of integers.
std::vector<index_t> integer_list(std::string const& argument, std::string const& value, std::string const& own_name);

/// "0.02", "0.02,0.03" (one per head) or a file of at most four axes, as (1 or B, 1 or H, 1 or L, 1).
numbers number_list(std::string const& argument, std::string const& value, std::string const& own_name);

/// NAME=VALUE of a preset's parameters, tables and constants, put into `to`; throws for names that the preset does not
/// have, and for parameters and tables that are needed and not given.
///   a number                 one for every row              -inf and inf are numbers
///   numbers, a list          one per head
///   a file                   (H), (H, Lq) or (B, H, Lq) of a parameter; (rows, columns), or one axis, of a table
void set_parameters(preset const& of, std::vector<std::string> const& assignments, problem& to);

}  // namespace attune::tool
