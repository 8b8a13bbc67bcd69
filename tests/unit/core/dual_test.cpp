// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every rule against a derivative written down by hand, at first and second order, and at the places where a rule could
// divide by zero, overflow or cancel.
#include <attune/core/activation.hpp>
#include <attune/core/dual.hpp>
#include <attune/exec/reference/multiprecision.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using dual1 = dual<double, 1>;
using dual2 = dual<double, 2>;
using second = dual<dual<double, 1>, 1>;  // tangent[0].tangent[0] is the second derivative

dual1 moving(double x) { return dual1::variable(x, 0); }
second moving_twice(double x) { return second::variable(moving(x), 0); }

TEST_CASE("dual: numbers are constants, variables move along one direction") {
  dual2 const zero, number(3), x = dual2::variable(5, 1);
  CHECK(zero.value == 0);
  CHECK(zero.tangent[1] == 0);
  CHECK(number.value == 3);
  CHECK(number.tangent[0] == 0);
  CHECK(x.value == 5);
  CHECK(x.tangent[0] == 0);
  CHECK(x.tangent[1] == 1);
}

TEST_CASE("dual: sum, difference, product, quotient, sign") {
  dual2 const x = dual2::variable(3, 0), y = dual2::variable(4, 1);
  auto const is = [](dual2 const& r, double value, double by_x, double by_y) {
    CHECK(r.value == value);
    CHECK(r.tangent[0] == by_x);
    CHECK(r.tangent[1] == by_y);
  };
  is(x + y, 7, 1, 1);
  is(x - y, -1, 1, -1);
  is(-x, -3, -1, 0);
  is(x * y, 12, 4, 3);
  is(x / y, 0.75, 0.25, -0.1875);  // 1 / y, -x / y^2
  is(x * dual2(2) + dual2(1), 7, 2, 0);
}

TEST_CASE("dual: no power of a denominator overflows on its own") {
  dual2 const r = dual2::variable(1e200, 0) / dual2::variable(1e200, 1);  // 1 / y^2 would be 0, x / y^2 1e-200
  CHECK(near(r.tangent[0], 1e-200));
  CHECK(near(r.tangent[1], -1e-200));
  CHECK(near((dual1(1e-200) / moving(1e-200)).tangent[0], -1e200));
}

TEST_CASE("dual: 0 wins over an infinity: what does not move, and what has vanished, has derivative 0") {
  CHECK((moving(0) * dual1(inf)).tangent[0] == inf);  // it moves
  CHECK((dual1(0) * dual1(inf)).tangent[0] == 0);     // it does not
  CHECK(math::exp(dual1(inf)).tangent[0] == 0);
  CHECK(math::log(dual1(0)).tangent[0] == 0);
  CHECK(math::sqrt(dual1(0)).tangent[0] == 0);
  dual1 off(-inf);  // a logit switched off, moving infinitely fast
  off.tangent[0] = inf;
  CHECK(math::exp_nonpositive(off).value == 0);
  CHECK(math::exp_nonpositive(off).tangent[0] == 0);
  CHECK((math::exp_nonpositive(off) * moving(3)).tangent[0] == 0);
}

TEST_CASE("dual: the plain chain rule gives the same numbers, and NaN where an infinity met 0") {
  using plain = dual<double, 2, chain_rule::plain>;
  auto const f = [](auto const& x, auto const& y) {
    return math::exp(x * y) / (x + y) + math::sqrt(y) * math::tanh(x);
  };
  auto const guarded = f(dual<double, 2>::variable(0.3, 0), dual<double, 2>::variable(1.7, 1));
  auto const same = f(plain::variable(0.3, 0), plain::variable(1.7, 1));
  CHECK(guarded.value == same.value);
  for (int n = 0; n < 2; ++n) CHECK(near(guarded.tangent[n], same.tangent[n], 1e-15));  // products may be fused, or not
  CHECK(std::isnan(math::sqrt(plain(0)).tangent[0]));
}

TEST_CASE("dual: comparisons are those of values") {
  dual1 const x = moving(1), y(1), z(2);
  CHECK(x == y);
  CHECK_FALSE(x != y);
  CHECK(x <= y);
  CHECK(x >= y);
  CHECK(x < z);
  CHECK(z > x);
}

/// f' and f'' of a function of math at x.
struct rule {
  char const* name;
  double x, value, first, second;
};
template <class F>
void check_rule(rule const& r, F const& f, double tolerance = 1e-14) {
  CAPTURE(r.name);
  CAPTURE(r.x);
  dual1 const once = f(moving(r.x));
  attune::test::second const twice = f(moving_twice(r.x));
  CHECK(near(once.value, r.value, tolerance));
  CHECK(near(once.tangent[0], r.first, tolerance));
  CHECK(near(twice.value.value, r.value, tolerance));
  CHECK(near(twice.value.tangent[0], r.first, tolerance));
  CHECK(near(twice.tangent[0].value, r.first, tolerance));
  CHECK(near(twice.tangent[0].tangent[0], r.second, tolerance));
  CHECK(f(dual1(r.x)).tangent[0] == 0);
}

TEST_CASE("dual: the rule of every function of math, first and second derivative") {
  double const e = std::exp(0.5);
  check_rule({"exp", 0.5, e, e, e}, [](auto const& x) { return math::exp(x); });
  check_rule({"exp_nonpositive", -0.5, 1 / e, 1 / e, 1 / e}, [](auto const& x) { return math::exp_nonpositive(x); });
  check_rule({"expm1", 0.5, std::expm1(0.5), e, e}, [](auto const& x) { return math::expm1(x); });
  check_rule({"expm1", 1e-20, 1e-20, 1, 1}, [](auto const& x) { return math::expm1(x); });
  check_rule({"log", 4, 2 * ln2, 0.25, -0.0625}, [](auto const& x) { return math::log(x); });
  check_rule({"log1p", 3, 2 * ln2, 0.25, -0.0625}, [](auto const& x) { return math::log1p(x); });
  check_rule({"log1p_unit", 1, ln2, 0.5, -0.25},
             [](auto const& x) { return scalar<std::remove_cvref_t<decltype(x)>>::log1p_unit(x); });
  check_rule({"sqrt", 4, 2, 0.25, -0.03125}, [](auto const& x) { return math::sqrt(x); });
  check_rule({"sin", 0.5, std::sin(0.5), std::cos(0.5), -std::sin(0.5)}, [](auto const& x) { return math::sin(x); });
  check_rule({"cos", 0.5, std::cos(0.5), -std::sin(0.5), -std::cos(0.5)}, [](auto const& x) { return math::cos(x); });
  double const side = std::sqrt(0.75), bell = 2 / std::sqrt(std::acos(-1.0)) * std::exp(-0.25);
  check_rule({"acos", 0.5, std::acos(0.5), -1 / side, -0.5 / (side * side * side)},
             [](auto const& x) { return math::acos(x); });
  check_rule({"erf", 0.5, std::erf(0.5), bell, -bell}, [](auto const& x) { return math::erf(x); });
  check_rule({"floor", 2.5, 2, 0, 0}, [](auto const& x) { return math::floor(x); });
  check_rule({"pow by x", 4, 32, 20, 7.5},
             [](auto const& x) { return math::pow(x, std::remove_cvref_t<decltype(x)>(2.5)); });
  check_rule({"pow by x < 0", -2, -8, 12, -12},
             [](auto const& x) { return math::pow(x, std::remove_cvref_t<decltype(x)>(3)); });
  check_rule({"pow by y", 3, 8, 8 * ln2, 8 * ln2 * ln2},
             [](auto const& y) { return math::pow(std::remove_cvref_t<decltype(y)>(2), y); });
  check_rule({"square", 3, 9, 6, 2}, [](auto const& x) { return x * x; });
  check_rule({"inverse", 2, 0.5, -0.25, 0.25}, [](auto const& x) { return std::remove_cvref_t<decltype(x)>(1) / x; });
}

TEST_CASE("dual: pow at its edges") {
  auto const by_x = [](double x, double y) { return math::pow(moving(x), dual1(y)).tangent[0]; };
  auto const by_y = [](double x, double y) { return math::pow(dual1(x), moving(y)).tangent[0]; };
  CHECK(by_x(0, 2) == 0);
  CHECK(by_x(0, 1) == 1);
  CHECK(by_x(0, 0.5) == inf);
  CHECK(by_x(0, 0) == 0);
  CHECK(by_x(3, 0) == 0);
  CHECK(by_y(0, 2) == 0);
  CHECK(by_y(1, 2) == 0);
  CHECK(std::isnan(by_y(-2, 2)));
  CHECK(math::pow(moving(0.3), moving(0.3)).tangent[0] ==
        doctest::Approx(std::pow(0.3, 0.3) * (std::log(0.3) + 1)).epsilon(1e-14));
  CHECK(math::acos(moving(1)).tangent[0] == -inf);
  CHECK(math::acos(dual1(1)).tangent[0] == 0);
}

TEST_CASE("dual: softplus, sigmoid, tanh keep their digits far out on both sides") {
  auto const sp = [](auto const& x) { return math::softplus(x); };
  auto const sg = [](auto const& x) { return math::sigmoid(x); };
  auto const th = [](auto const& x) { return math::tanh(x); };
  check_rule({"softplus", 0, ln2, 0.5, 0.25}, sp);
  check_rule({"softplus", ln3, 2 * ln2, 0.75, 0.1875}, sp);
  check_rule({"softplus", -ln3, 2 * ln2 - ln3, 0.25, 0.1875}, sp);
  double const tiny = 3.720075976020836e-44;  // e^-100
  check_rule({"softplus", -100, tiny, tiny, tiny}, sp);
  check_rule({"softplus", 100, 100, 1, tiny}, sp);
  check_rule({"sigmoid", ln3, 0.75, 0.1875, -0.09375}, sg);  // s s', s'(1 - 2 s)
  check_rule({"sigmoid", 100, 1, tiny, -tiny}, sg);
  check_rule({"sigmoid", -100, tiny, tiny, tiny}, sg);
  double const t = 0.8;  // tanh(log 3)
  check_rule({"tanh", ln3, t, 1 - t * t, -2 * t * (1 - t * t)}, th);
  CHECK(math::tanh(moving(1e-20)).value == 1e-20);
  CHECK(math::tanh(moving(1e-20)).tangent[0] == 1);
  CHECK(near(math::tanh(moving_twice(1e-3)).tangent[0].tangent[0],
             -2 * std::tanh(1e-3) * (1 - std::tanh(1e-3) * std::tanh(1e-3)), 1e-12));
  check_rule({"tanh", 50, 1, 4 * tiny, -8 * tiny}, th);  // 1 - tanh^2 = 4 e^-100
  for (double x : {1e4, -1e4}) {
    CHECK(math::softplus(moving(x)).tangent[0] == (x > 0 ? 1 : 0));
    CHECK(math::sigmoid(moving(x)).tangent[0] == 0);
    CHECK(math::tanh(moving(x)).tangent[0] == 0);
  }
  CHECK(math::softplus(moving(-inf)).tangent[0] == 0);
  CHECK(math::softplus(moving(inf)).tangent[0] == 1);
}

TEST_CASE("dual: kinks. larger and smaller take the first on a tie; |x|' = 0 at 0") {
  dual2 const a = dual2::variable(1, 0), b = dual2::variable(1, 1), c = dual2::variable(2, 1);
  CHECK(math::larger(a, b).tangent[0] == 1);
  CHECK(math::larger(b, a).tangent[1] == 1);
  CHECK(math::larger(a, c).tangent[1] == 1);
  CHECK(math::smaller(a, b).tangent[0] == 1);
  CHECK(math::smaller(c, a).tangent[0] == 1);
  CHECK(math::abs(moving(-3)).tangent[0] == -1);
  CHECK(math::abs(moving(3)).tangent[0] == 1);
  CHECK(math::abs(moving(0)).tangent[0] == 0);
  CHECK(math::select(true, a, c).tangent[0] == 1);
  CHECK(math::select(false, a, c).tangent[1] == 1);
  CHECK(math::scale_keeping_off(moving(0), dual1(-inf)).value == -inf);
  CHECK(math::scale_keeping_off(moving(0), dual1(-inf)).tangent[0] == 0);
  CHECK(math::scale_keeping_off(moving(2), dual1(3)).tangent[0] == 3);
}

/// log(1 + k x) / k and its derivatives by k and x, at 50 digits by their Taylor series in k, or directly.
digits50 rate_by_k(double k, double x) {
  digits50 const z = digits50(k) * x;
  digits50 series = 0;
  if (abs(z) < digits50(0.5)) {
    digits50 power = 1;
    for (int n = 0; n < 170; ++n, power *= -z) series += power * (n + 1) / (n + 2);
  } else {
    series = (log(1 + z) - z / (1 + z)) / (z * z);
  }
  return -digits50(x) * x * series;
}

TEST_CASE("dual: log1p_rate, whose derivative by k has a limit at k = 0 and cancels near it") {
  for (double x : {0.5, -0.5, 1.0, -3.0, 8.0, 0.0})
    for (double k : {0.0, 1e-300, 1e-12, 1e-4, 0.01, 0.0624, 0.0626, 0.124, 0.13, 0.3}) {
      CAPTURE(k);
      CAPTURE(x);
      dual2 const r = math::log1p_rate(dual2::variable(k, 0), dual2::variable(x, 1));
      CHECK(near(r.value, k == 0 ? x : std::log1p(k * x) / k));
      CHECK(near(r.tangent[0], double(rate_by_k(k, x)), 2e-13));
      CHECK(near(r.tangent[1], 1 / (1 + k * x)));
      CHECK(math::log1p_rate(dual1(k), dual1(x)).tangent[0] == 0);
    }
  CHECK(math::log1p_rate(moving(0), dual1(3)).tangent[0] == -4.5);  // -x^2 / 2
}

TEST_CASE("dual: log1p_rate twice") {
  auto const by_k = [](double k, double x) {
    second const r = math::log1p_rate(moving_twice(k), second(dual1(x)));
    return r.tangent[0].tangent[0];
  };
  CHECK(near(by_k(0, 2), 2.0 * 8 / 3));  // x - k x^2 / 2 + k^2 x^3 / 3: 2 x^3 / 3
  CHECK(near(by_k(0, -1), -2.0 / 3));    //
  double const k = 0.5, x = 2,
               l = ln2;  // z = 1; r = l / k: r'' = 2 l / k^3 - 2 x / (k^2 (1 + z)) - x^2 / (k (1 + z)^2)
  CHECK(near(by_k(k, x), 2 * l / (k * k * k) - 2 * x / (k * k * 2) - x * x / (k * 4), 1e-13));
  second const mixed = math::log1p_rate(second::variable(dual1(0.5), 0), second(moving(2)));
  CHECK(near(mixed.tangent[0].tangent[0], -2.0 / 4));  // d/dk 1 / (1 + k x) = -x / (1 + k x)^2
}

TEST_CASE("dual: the order of a scalar counts how often it is a dual") {
  CHECK(scalar<double>::order == 0);
  CHECK(scalar<dual1>::order == 1);
  CHECK(scalar<second>::order == 2);
}

TEST_CASE("dual: any scalar. 50 digits") {
  using wide = dual<digits50, 1>;
  wide const r = math::sigmoid(wide::variable(log(digits50(3)), 0));
  CHECK(double(abs(r.value - digits50(3) / 4)) < 1e-48);
  CHECK(double(abs(r.tangent[0] - digits50(3) / 16)) < 1e-48);
}

TEST_CASE("dual: a row of duals knows which parameters move") {
  parameter a = 2, b = 3, other = 2, later = 2;
  a.number(4);
  b.number(5);
  later.number(6);
  row<dual2> r{};
  r.numbers.seeds = {.first_number = 4, .count = 2};
  CHECK(r(a).value == 2);
  CHECK(r(a).tangent[0] == 1);
  CHECK(r(b).tangent[1] == 1);
  CHECK(r(b).tangent[0] == 0);
  CHECK(r(parameter(a)).tangent[0] == 1);  // a copy has its number
  CHECK(r(other).tangent[0] == 0);         // no number
  CHECK(r(later).tangent[0] == 0);
  CHECK(r(later).tangent[1] == 0);
  CHECK(r(parameter{}, dual2(7)).value == 7);
  CHECK(r.logit(a).value == 2);
}

TEST_CASE("dual: a directional derivative of parameters and tables") {
  parameter a = 2, b = 3;
  a.number(0);
  b.number(1);
  parameter const along[] = {0.5, {}};  // b does not move
  double const entries[] = {4, 5}, directions[] = {0.25, -1};
  table t = tensor<double const>(entries, {1, 1, 2, 1});
  t.number(0);
  table const t_along = tensor<double const>(directions, {1, 1, 2, 1});
  lift<dual1> numbers;
  numbers.seeds = {.count = 2, .along = along, .tables_along = &t_along};
  CHECK(numbers.value(a, {}).tangent[0] == 0.5);
  CHECK(numbers.value(b, {}).tangent[0] == 0);
  CHECK(numbers.entry(t, 0, 0, 1, 0).value == 5);
  CHECK(numbers.entry(t, 0, 0, 1, 0).tangent[0] == -1);
  CHECK(numbers.entry(t_along, 0, 0, 0, 0).tangent[0] == 0);
}

}  // namespace
}  // namespace attune::test
