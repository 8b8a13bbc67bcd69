// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   throw error("forward", "k", "feature width 32", "64, the width of q")
//
// Bad input fails at the host boundary, before any output is written. The message says what to do.
#pragma once

#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <attune/config.hpp>
#include <attune/core/number_text.hpp>

namespace attune {

namespace detail {

/// A part of a message: text or a number. It refers to the text without copying it.
class text_part {
 public:
  text_part(char const* words) : words_(words) {}
  text_part(std::string const& words) : words_(words) {}
  text_part(std::string_view words) : words_(words) {}
  text_part(double number) : real_(number), kind_(kind::real) {}
  template <std::integral Integer>
  text_part(Integer number)
      : integer_(static_cast<unsigned long long>(number)),
        kind_(std::is_unsigned_v<Integer> ? kind::natural : kind::integer) {}

  void append_to(std::string& text) const {
    if (kind_ == kind::words)
      text += words_;
    else if (kind_ == kind::natural)
      text += std::to_string(integer_);
    else if (kind_ == kind::integer)
      text += std::to_string(static_cast<long long>(integer_));
    else
      text += number_text(real_, 9);
  }

 private:
  enum class kind { words, natural, integer, real };
  std::string_view words_;
  unsigned long long integer_ = 0;
  double real_ = 0;
  kind kind_ = kind::words;
};

ATTUNE_NOINLINE inline std::string joined(std::initializer_list<text_part> parts) {
  std::string all;
  for (text_part const& part : parts) part.append_to(all);
  return all;
}

/// Concatenates the parts: text("shape ", 3) is "shape 3". Error messages occur in the code of every operator, so the
/// code that builds them is compiled once and not inlined.
template <class... Parts>
std::string text(Parts const&... parts) {
  return joined({text_part(parts)...});
}

}  // namespace detail

/// Thrown by every host function of attune on bad run-time input.
class error : public std::invalid_argument {
 public:
  /// "attune::<function>: <argument> has <found>; expected <expected>"
  ATTUNE_NOINLINE error(std::string_view function, std::string_view argument, std::string_view found,
                        std::string_view expected)
      : std::invalid_argument(
            detail::text("attune::", function, ": ", argument, " has ", found, "; expected ", expected)) {}
};

}  // namespace attune
