// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   digits50: a float with 50 decimal digits
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/eigen.hpp>

namespace attune {

/// Enough digits that a result rounded to double is correctly rounded, unless it cancels to 1e-34 of its terms.
/// Expression templates are off: policies are written for values.
using digits50 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;

}  // namespace attune
