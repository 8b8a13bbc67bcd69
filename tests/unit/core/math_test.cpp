// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Scalars of one lane; batches: simd_math_test.cpp.
#include <cmath>

#include <attune/core/math.hpp>
#include <attune/exec/reference/multiprecision.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

template <class T>
double as_double(T const& x) {
  return static_cast<double>(x);
}

TEST_CASE_TEMPLATE("math: values a reader knows", T, float, double, digits50) {
  double const tolerance = sizeof(T) == sizeof(float) ? 3e-7 : 4e-16;
  auto const same = [&](T const& x, double y) { return near(as_double(x), y, tolerance); };
  T const two(2), three(3), log2 = math::log(two), log3 = math::log(three);
  CHECK(same(math::softplus(T(0)), ln2));                // log(1 + 1)
  CHECK(same(math::softplus(log3), 2 * ln2));            // log(1 + 3)
  CHECK(same(math::softplus(T(-log3)), 2 * ln2 - ln3));  // log(1 + 1/3) = log 4 - log 3
  CHECK(same(math::sigmoid(log3), 0.75));                // 3 / (3 + 1)
  CHECK(same(math::sigmoid(T(-log3)), 0.25));
  CHECK(same(math::tanh(log2), 0.6));  // (4 - 1) / (4 + 1)
  CHECK(same(math::tanh(T(-log2)), -0.6));
}

TEST_CASE_TEMPLATE("math: limits", T, float, double, digits50) {
  T const up = math::infinity<T>(), down = -up, not_a_number = std::numeric_limits<T>::quiet_NaN();
  CHECK(math::softplus(up) == up);
  CHECK(math::softplus(down) == T(0));
  CHECK(math::softplus(T(10000)) == T(10000));
  CHECK(math::sigmoid(up) == T(1));
  CHECK(math::sigmoid(down) == T(0));
  CHECK(math::tanh(up) == T(1));
  CHECK(math::tanh(down) == T(-1));
  CHECK(math::tanh(T(10000)) == T(1));
  CHECK(math::exp_nonpositive(down) == T(0));
  CHECK(math::exp_nonpositive(T(0)) == T(1));
  CHECK(math::expm1(down) == T(-1));
  for (T const& x : {math::softplus(not_a_number), math::sigmoid(not_a_number), math::tanh(not_a_number)})
    CHECK(std::isnan(as_double(x)));
}

TEST_CASE("math: small results keep their digits instead of becoming 0") {
  double const tiny = 3.720075976020836e-44;  // e^-100
  CHECK(near(math::softplus(-100.0), tiny));
  CHECK(near(math::sigmoid(-100.0), tiny));
  CHECK(near(as_double(math::softplus(digits50(-100))), tiny));
  CHECK(math::softplus(-745.0) > 0);  // the last e^x above 0
  CHECK(math::tanh(1e-300) == 1e-300);
  CHECK(math::tanh(-1e-300) == -1e-300);
  CHECK(math::tanh(digits50("1e-200000")) == digits50("1e-200000"));
}

TEST_CASE("math: 50 digits are 50 digits") {
  digits50 const known("0.69314718055994530941723212145817656807550013436026");  // log 2
  CHECK(math::abs(digits50(math::softplus(digits50(0)) - known)) < digits50("1e-49"));
}

TEST_CASE("larger, smaller: the first on a tie and where the second is NaN") {
  CHECK(math::larger(2.0, 3.0) == 3);
  CHECK(math::smaller(2.0, 3.0) == 2);
  CHECK(std::signbit(math::larger(-0.0, 0.0)));
  CHECK_FALSE(std::signbit(math::larger(0.0, -0.0)));
  CHECK_FALSE(std::signbit(math::smaller(0.0, -0.0)));
  CHECK(math::larger(1.0, nan) == 1);
  CHECK(math::smaller(1.0, nan) == 1);
  CHECK(std::isnan(math::larger(nan, 1.0)));
}

TEST_CASE("select: the side not taken does no harm") {
  CHECK(math::select(true, 1.0, nan) == 1);
  CHECK(math::select(false, nan, 1.0) == 1);
}

TEST_CASE_TEMPLATE("scale_keeping_off: -inf stays -inf under every factor", T, float, double, digits50) {
  T const down = -math::infinity<T>();
  CHECK(math::scale_keeping_off(T(0), down) == down);
  CHECK(math::scale_keeping_off(T(2), down) == down);
  CHECK(math::scale_keeping_off(T(-1), down) == down);
  CHECK(math::scale_keeping_off(T(0), T(5)) == T(0));
  CHECK(math::scale_keeping_off(T(3), T(5)) == T(15));
  CHECK(std::isnan(as_double(math::scale_keeping_off(T(0), math::infinity<T>()))));
}

}  // namespace
}  // namespace attune::test
