// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every function that docs/reference/policies.md promises to policies, on every kind of scalar that a policy meets (intervals:
// tests/unit/testing/enclosure/interval_test.cpp). tests/cmake/CheckVocabulary.cmake sees that no name is missing here.
#include <cmath>
#include <tuple>
#include <type_traits>

#include <attune/certify/rounded.hpp>
#include <attune/core/dual.hpp>
#include <attune/core/simd_lift.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/exec/reference/multiprecision.hpp>
#include <attune/policies/probe.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

/// The number in a scalar; of a batch, that of its last lane.
double number(float x) { return double(x); }
double number(double x) { return x; }
double number(digits50 const& x) { return static_cast<double>(x); }
double number(certify::rounded const& x) { return x.value; }
template <class T, class Arch>
double number(xsimd::batch<T, Arch> const& x) {
  alignas(64) T lanes[xsimd::batch<T, Arch>::size];
  x.store_aligned(lanes);
  return double(lanes[xsimd::batch<T, Arch>::size - 1]);
}
template <class T, int N, chain_rule Rule>
double number(dual<T, N, Rule> const& x) {
  return number(x.value);
}

constexpr double e1 = 2.718281828459045;

/// visit(name, f(x), expected at x) for every function of one or two arguments, at an x in (0, 1); the number that 0.5
/// and 0.75 give.
template <class T, class Visit>
void every_function(Visit const& visit) {
  T const half(0.5), big(0.75), down(-0.5);
  visit("abs", math::abs(down), 0.5);
  visit("acos", math::acos(half), std::acos(0.5));
  visit("as_computed", math::as_computed(half), 0.5);
  visit("cos", math::cos(half), std::cos(0.5));
  visit("erf", math::erf(half), std::erf(0.5));
  visit("exp", math::exp(half), std::sqrt(e1));
  visit("exp_nonpositive", math::exp_nonpositive(down), 1 / std::sqrt(e1));
  visit("expm1", math::expm1(half), std::expm1(0.5));
  visit("floor", math::floor(down), -1);
  visit("larger", math::larger(half, big), 0.75);
  visit("log", math::log(half), std::log(0.5));
  visit("log1p", math::log1p(half), std::log(1.5));
  visit("log1p_rate", math::log1p_rate(half, big), 2 * std::log(1.375));
  visit("pow", math::pow(half, big), std::pow(0.5, 0.75));
  visit("scale_keeping_off", math::scale_keeping_off(half, big), 0.375);
  visit("select", math::select(half < big, half, big), 0.5);
  visit("sigmoid", math::sigmoid(half), 1 / (1 + 1 / std::sqrt(e1)));
  visit("sin", math::sin(half), std::sin(0.5));
  visit("smaller", math::smaller(half, big), 0.5);
  visit("softplus", math::softplus(half), std::log1p(std::sqrt(e1)));
  visit("sqrt", math::sqrt(half), std::sqrt(0.5));
  visit("tanh", math::tanh(half), std::tanh(0.5));
  visit("zero_if_finite", math::zero_if_finite(half), 0);
}

TEST_CASE_TEMPLATE("Every function of the vocabulary, on every kind of scalar", T, float, double, digits50,
                   xsimd::batch<float>, xsimd::batch<double>, certify::rounded, dual<float, 2>, dual<double, 1>,
                   dual<double, 1, chain_rule::plain>, dual<xsimd::batch<float>, 2>, dual<dual<double, 1>, 1>,
                   dual<digits50, 1>, dual<certify::rounded, 1>) {
  every_function<T>([](char const* name, T const& got, double want) {
    CAPTURE(std::string(name));
    CHECK(near(number(got), want, 3e-7));
  });
  CHECK(number(math::infinity<T>()) == inf);
  CHECK(number(T(math::lowest_logit<T>())) < -8e37);
}

TEST_CASE("The scalar that policies are tried with has every function, and no values") {
  using T = detail::probe_scalar;
  T const x, y;
  std::ignore = std::tuple{math::abs(x),
                           math::acos(x),
                           math::cos(x),
                           math::erf(x),
                           math::exp(x),
                           math::expm1(x),
                           math::floor(x),
                           math::larger(x, y),
                           math::log(x),
                           math::log1p(x),
                           math::sin(x),
                           math::smaller(x, y),
                           math::sqrt(x),
                           math::pow(x, y),
                           math::log1p_rate(x, y),
                           math::sigmoid(x),
                           math::softplus(x),
                           math::tanh(x),
                           math::exp_nonpositive(x),
                           math::as_computed(x),
                           math::zero_if_finite(x),
                           math::select(x < y, x, y),
                           math::scale_keeping_off(x, y),
                           math::infinity<T>(),
                           math::lowest_logit<T>()};
}

}  // namespace
}  // namespace attune::test
