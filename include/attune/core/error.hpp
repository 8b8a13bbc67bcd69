// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   throw error("forward", "k", "feature width 32", "64, the width of q")
//
// Bad input fails at the host boundary, before any output is written, with a text that says what to do.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace attune {

namespace detail {

inline void append(std::string& to, char const* part) { to += part; }
inline void append(std::string& to, std::string const& part) { to += part; }
inline void append(std::string& to, double part) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", part);
  to += digits;
}
template <class Integer>
void append(std::string& to, Integer part) {
  to += std::to_string(part);
}

/// The parts, one after the other: text("shape ", 3) is "shape 3".
template <class... Parts>
std::string text(Parts const&... parts) {
  std::string all;
  (append(all, parts), ...);
  return all;
}

}  // namespace detail

/// Thrown by every host function of attune on bad run-time input.
class error : public std::invalid_argument {
 public:
  /// "attune::<function>: <argument> has <found>; expected <expected>"
  error(std::string const& function, std::string const& argument, std::string const& found, std::string const& expected)
      : std::invalid_argument(detail::text("attune::", function, ": ", argument, " has ", found, "; expected ", expected)) {}
};

}  // namespace attune
