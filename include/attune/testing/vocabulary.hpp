// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Names that a verdict and its bounds share: number formats and the bounds of a call.
#pragma once

#include <attune/certify/error_bound.hpp>
#include <attune/certify/number_format.hpp>

namespace attune::testing {

using certify::bounded_number;
using certify::call_numbers;
using certify::error_bound;
using certify::error_bounds;
using certify::format_of;
using certify::name_of;
using certify::number_format;
using certify::precision;
using certify::rounded_to;
using certify::storage;
using certify::storage_of;

}  // namespace attune::testing
