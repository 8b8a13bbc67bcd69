// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <charconv>
#include <cstdio>
#include <string>

#include <attune/core/error.hpp>
#include <attune/core/number_text.hpp>

#include "../../support/comma_locale.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

std::string printed(char const* format, int precision, double x) {
  char digits[64];
  std::snprintf(digits, sizeof digits, format, precision, x);
  return digits;
}

TEST_CASE("number_text: the characters of printf in the locale C") {
  for (double const x : {0.0, -0.0, 0.1, -1.5, 100.0, 123456789.0, 1e-300, -1e300, 5e-324, 0.00012345678, inf, -inf})
    for (int const precision : {1, 2, 9, 17}) {
      CHECK(detail::number_text(x, precision) == printed("%.*g", precision, x));
      CHECK(detail::number_text(x, precision, std::chars_format::scientific) == printed("%.*e", precision, x));
      CHECK(detail::signed_number_text(x, precision) == printed("%+.*g", precision, x));
    }
  CHECK(detail::number_text(nan, 3) == "nan");
}

TEST_CASE("number_text: a decimal point in a locale with a comma, in error messages too") {
  comma_locale const here;
  if (here.of_c())
    CHECK(printed("%.*g", 3, 0.5) == "0,5");
  else
    MESSAGE("no locale could be made: printf was not tried");
  CHECK(detail::number_text(-1234.5, 17) == "-1234.5");
  CHECK(detail::number_text(0.25, 1, std::chars_format::scientific) == "2.5e-01");
  CHECK(detail::text("the value ", -1.5, ", ", 12345) == "the value -1.5, 12345");
}

}  // namespace
}  // namespace attune::test
