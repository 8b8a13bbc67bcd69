// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   number_text(0.1, 17)  ==  "0.10000000000000001"
//
// A number as text, the same in every locale: printf and streams write the decimal point of the locale.
#pragma once

#include <array>
#include <charconv>
#include <string>

#include <attune/config.hpp>

namespace attune::detail {

/// x as printf writes it in the locale "C": with %.<precision>g, or with %.<precision>e for
/// std::chars_format::scientific. The precision is at most 17.
ATTUNE_NOINLINE inline std::string number_text(double x, int precision,
                                               std::chars_format as = std::chars_format::general) {
  std::array<char, 32> digits;
  return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x, as, precision).ptr);
}

/// The same with a sign for positive numbers too.
inline std::string signed_number_text(double x, int precision) {
  std::string const digits = number_text(x, precision);
  return digits.starts_with('-') ? digits : "+" + digits;
}

}  // namespace attune::detail
