// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <attune/core/moving_average.hpp>
#include <attune/core/parameter.hpp>
#include <attune/exec/reference/multiprecision.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using average = moving_average<>;
using values = std::vector<double>;

TEST_CASE("moving_average: rho a + (1 - rho) mean, from 0 with momentum 0.9 as in the paper") {
  average a;
  CHECK(a.momentum() == 0.9);
  CHECK(a.value() == 0);
  CHECK(a.count() == 0);
  a.update(values{1, 2, 3});
  CHECK(near(a.value(), 0.2));  // 0.1 * 2
  a.update(values{5});
  CHECK(near(a.value(), 0.68));  // 0.9 * 0.2 + 0.1 * 5
  CHECK(a.count() == 2);
}

TEST_CASE("moving_average: another momentum and start") {
  average a(0.5, 8);
  CHECK(a.value() == 8);
  a.update(std::span<double const>(values{2, 4}));
  CHECK(a.value() == 5.5);  // 4 + 1.5
  CHECK(a.initial() == 8);
  average last(0.0, 8);
  last.update(values{2, 4});
  CHECK(last.value() == 3);
  CHECK(last.debiased() == 3);
}

TEST_CASE("moving_average: the mean over a view, whatever its strides and its element type") {
  std::vector<float> const numbers{1, 100, 2, 100, 3, 100, 6, 100};
  average a(0.5);
  a.update(tensor<float const>(numbers.data(), {2, 1, 2, 1}, {4, 0, 2, 1}));  // every other number
  CHECK(a.value() == 1.5);
}

TEST_CASE("moving_average: debiased is the average of what was seen") {
  average a;
  CHECK(a.debiased() == 0);
  for (double x : {0.25, 0.25, 0.25}) {
    a.update(values{x});
    CHECK(near(a.debiased(), 0.25));
  }
  average b(0.5, 100);  // the initial value leaves too
  CHECK(b.debiased() == 100);
  b.update(values{1});
  CHECK(near(b.debiased(), 1));
  b.update(values{4});
  CHECK(near(b.debiased(), 3));  // (0.25 * 1 + 0.5 * 4) / 0.75
  average slow(1 - 1e-12);       // 1 - rho^t does not cancel
  slow.update(values{3});
  CHECK(near(slow.debiased(), 3, 1e-4));  // 1 - rho itself has rounding 1e-4
}

TEST_CASE("moving_average: equality sees every number") {
  average a(0.5), b(0.5);
  CHECK(a == b);
  a.update(values{0});
  CHECK(a.value() == b.value());
  CHECK_FALSE(a == b);  // the count
  CHECK_FALSE(average(0.5) == average(0.25));
  CHECK_FALSE(average(0.5, 1) == average(0.5));
}

TEST_CASE("moving_average: bad numbers are named, and nothing changes") {
  CHECK(error_of([] { average(1.0); }) ==
        "attune::moving_average: momentum has the value 1; expected a number in [0, 1)");
  CHECK(error_of([] { average(-0.1); }) ==
        "attune::moving_average: momentum has the value -0.1; expected a number in [0, 1)");
  CHECK(error_of([] { (void)average{nan}; }) ==
        "attune::moving_average: momentum has the value nan; expected a number in [0, 1)");
  CHECK(error_of([] { average(0.5, inf); }) ==
        "attune::moving_average: initial has the value inf; expected a finite number");
  average a(0.5, 1);
  average const before = a;
  CHECK(error_of([&] { a.update(values{}); }) ==
        "attune::moving_average::update: values has no element; expected at least one");
  CHECK(error_of([&] { a.update(values{1, nan}); }) ==
        "attune::moving_average::update: values has the value nan at 1; expected finite numbers");
  CHECK(a == before);
}

TEST_CASE("moving_average: text and back, bit for bit") {
  average a(0.1, 1.0 / 3);
  a.update(values{0.7, -2e-308});
  a.update(values{1e300});
  average const b = average::from_string(a.to_string());
  CHECK(b == a);
  average c = a, d = b;
  c.update(values{0.3});
  d.update(values{0.3});
  CHECK(c == d);
  CHECK(average(0.5, -3).to_string() == "attune.moving_average 1 1p-1 -1.8p+1 -1.8p+1 0");
  moving_average<float> narrow(0.1f, 0.3f);
  narrow.update(std::vector<float>{1});
  CHECK(moving_average<float>::from_string(narrow.to_string()) == narrow);
  for (double x : {std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::max(), 0.0})
    CHECK(average::from_string(average(0.0, x).to_string()).value() == x);
}

TEST_CASE("moving_average: text that is not one is named") {
  auto const text_of = [](std::string const& text) { return error_of([&] { average::from_string(text); }); };
  std::string const head = "attune.moving_average 1 ";
  CHECK(text_of(head + "1p-1 0p+0 0p+0 0") == "");
  CHECK(text_of("hello") ==
        "attune::moving_average::from_string: text has the value \"hello\"; expected "
        "\"attune.moving_average 1 <momentum> <initial> <value> <count>\" with that head");
  for (std::string const& bad : {std::string(), std::string("attune.moving_average 2 1p-1 0p+0 0p+0 0"),
                                 "attune.moving_average 11p-1 0p+0 0p+0 0" + std::string()})
    CHECK(text_of(bad) != "");
  CHECK(text_of(head + "1p-1 0p+0 x 0").ends_with("with hexadecimal numbers"));
  CHECK(text_of(head + "1p-1 0p+0").ends_with("with hexadecimal numbers"));
  CHECK(text_of(head + "1p-1 0p+0 0p+0").ends_with("with one whole number at the end"));
  CHECK(text_of(head + "1p-1 0p+0 0p+0 0 7").ends_with("with one whole number at the end"));
  CHECK(text_of(head + "1p+0 0p+0 0p+0 0").ends_with("with a momentum in [0, 1)"));
  CHECK(text_of(head + "1p-1 inf 0p+0 1").ends_with("with finite numbers"));
  CHECK(text_of(head + "1p-1 0p+0 0p+0 -1").ends_with("with a count >= 0, 0 only at the initial value"));
  CHECK(text_of(head + "1p-1 0p+0 1p+0 0").ends_with("with a count >= 0, 0 only at the initial value"));
}

TEST_CASE("moving_average: 50 digits") {
  moving_average<digits50> a(digits50(9) / 10);
  a.update(std::vector<digits50>{1});
  a.update(std::vector<digits50>{2, 4});
  CHECK(double(abs(a.value() - digits50(39) / 100)) < 1e-45);
  CHECK(double(abs(a.debiased() - digits50(39) / 19)) < 1e-45);  // 0.39 / (1 - 0.81)
}

TEST_CASE("moving_average: the same step as parameter::moving_average") {
  values const alphas{0.2, 0.4, 0.9};
  average a(0.75, 0.5);
  a.update(alphas);
  CHECK(near(parameter::moving_average(per_query(alphas, 1), 0.5, 0.75).at(0, 0, 0), a.value()));
}

}  // namespace
}  // namespace attune::test
