// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include <attune/core/error.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("error: the sentence names function, argument, what was found and what is wanted") {
  error const e("forward", "k", "feature extent 32", "64, the width of q");
  CHECK(std::string(e.what()) == "attune::forward: k has feature extent 32; expected 64, the width of q");
}

TEST_CASE("error: caught as std::invalid_argument") {
  CHECK_THROWS_AS(throw error("f", "x", "the value 1", "2"), std::invalid_argument);
}

TEST_CASE("text: the parts one after the other") {
  CHECK(detail::text() == "");
  CHECK(detail::text("shape ", 3, std::string(" x "), -4) == "shape 3 x -4");
  CHECK(detail::text(std::string_view("of the view").substr(0, 7), std::size_t(7)) == "of the 7");
  CHECK(detail::text(0.5, ", ", 1e300, ", ", std::numeric_limits<double>::infinity()) == "0.5, 1e+300, inf");
  CHECK(detail::text(std::numeric_limits<long long>::min()) == "-9223372036854775808");
  CHECK(detail::text(std::uint64_t(1) << 63, " ", ~std::uint64_t(0)) == "9223372036854775808 18446744073709551615");
}

}  // namespace
}  // namespace attune::test
