// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <attune/certify/enclosure/interval.hpp>
#include <attune/certify/enclosure/rounding.hpp>

namespace {

using attune::scalar;
using attune::certify::enclosed;
using attune::certify::interval;
using attune::certify::nearest;
using attune::certify::storage;
using attune::certify::working_precision;
namespace math = attune::math;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool contains(interval const& x, interval const& y) {
  return mpfr_lessequal_p(x.lower(), y.lower()) != 0 && mpfr_greaterequal_p(x.upper(), y.upper()) != 0;
}
interval hull(double a, double b) { return interval::hull(interval(a), interval(b)); }

}  // namespace

TEST_CASE("an interval holds the exact result and no more than rounding asks for") {
  interval const third = interval(1) / interval(3), one = third * interval(3);
  CHECK_FALSE(third.is_point());
  CHECK((one == interval(1)).may_hold);
  CHECK((one == interval(1)).may_fail);
  CHECK((one - interval(1) < interval(0x1p-120)).holds());
  CHECK((interval(0.1) + interval(0.2)).is_point());  // two doubles, exactly: not 0.3
  CHECK((interval(0.1) + interval(0.2) > interval(0.3)).holds());
  CHECK(contains(hull(-1, 2) * hull(-3, 5), hull(-6, 10)));
  CHECK(contains(hull(1, 2) / hull(4, 8), hull(0.125, 0.5)));
}

TEST_CASE("copies are the same number") {
  interval const x = hull(1, 2), copy = x;
  CHECK((x - copy).is_zero());
  CHECK((x == copy).holds());
  CHECK((x < copy).fails());
  CHECK((x <= copy).holds());
  CHECK(contains(hull(0, 4), copy * x));
  CHECK((interval(hull(-1, 2) * interval(1)) == hull(-1, 2)).may_fail);  // the same ends are not the same number
  interval const y = hull(-1, 2);
  CHECK((y * y >= interval(0)).holds());
  CHECK((x / copy).is_point());
}

TEST_CASE("comparisons that are not decided choose both sides") {
  interval const x = hull(-1, 1);
  auto const c = x > interval(0);
  CHECK(c.may_hold);
  CHECK(c.may_fail);
  CHECK((!c).may_hold);
  CHECK((c & (x > interval(2))).fails());
  CHECK((c | (x < interval(2))).holds());
  CHECK(contains(math::select(c, interval(5), interval(7)), hull(5, 7)));
  CHECK(math::select(x < interval(2), interval(5), interval(7)).is_same(interval()) == false);
  CHECK((math::select(x < interval(2), interval(5), interval(7)) == interval(5)).holds());
  interval const m = math::larger(x, interval(0.5));
  CHECK(contains(hull(0.5, 1), m));
  CHECK(math::larger(x, interval(-2)).is_same(x));
  CHECK(contains(hull(-1, 0.5), math::smaller(x, interval(0.5))));
  CHECK(contains(math::abs(x), hull(0, 1)));
}

TEST_CASE("what has no value is NaN, what may have none is unknown") {
  interval const inf(infinity), nan = inf - inf;
  CHECK(nan.is_nan());
  CHECK((interval() * inf).is_nan());
  CHECK((inf / inf).is_nan());
  CHECK((interval() / interval()).is_nan());
  CHECK(math::log(interval(-1)).is_nan());
  CHECK((nan + hull(1, 2)).is_nan());
  CHECK((nan == nan).fails());
  CHECK((nan != nan).holds());
  interval const unknown = interval(1) / hull(-1, 1);
  CHECK_FALSE(unknown.is_number());
  CHECK_FALSE(unknown.is_nan());
  CHECK((unknown == unknown).may_fail);
  CHECK_FALSE(math::log(hull(-1, 1)).is_number());
  CHECK_FALSE((hull(0, 1) * inf).is_number());
  CHECK((unknown * nan).is_nan());
  CHECK((inf + interval(1) == inf).holds());
  CHECK((hull(1, 2) * -inf == -inf).holds());
  CHECK((hull(1, 2) / inf).is_zero());
  CHECK(math::exp(-inf).is_zero());
  CHECK((math::log(interval()) == -inf).holds());
  CHECK(scalar<interval>::chained(interval(), unknown).is_zero());
}

TEST_CASE("functions hold what long double says") {
  for (double const x : {-700.0, -3.5, -0x1p-60, 0.0, 0x1p-30, 0.25, 2.0, 650.0}) {
    CAPTURE(x);
    long double const y = x;
    auto const near = [&](interval const& got, long double exact) {
      working_precision const more(256);
      double const head = double(exact);
      interval const value = interval(head) + interval(double(exact - (long double)head));
      interval const slack = math::abs(value) * interval(0x1p-60) + interval(1e-300);
      CHECK((got - value <= slack).holds());
      CHECK((value - got <= slack).holds());
    };
    interval const at(x);
    near(math::exp(at), std::exp(y));
    near(math::expm1(at), std::expm1(y));
    near(math::tanh(at), std::tanh(y));
    near(math::sin(at), std::sin(y));
    near(math::cos(at), std::cos(y));
    near(math::erf(at), std::erf(y));
    near(math::floor(at), std::floor(y));
    near(math::pow(at, interval(3)), y * y * y);
    near(math::softplus(at), std::fmax(y, 0.0L) + std::log1p(std::exp(-std::fabs(y))));
    near(math::sigmoid(at), 1 / (1 + std::exp(-y)));
    if (x > 0) {
      near(math::log(at), std::log(y));
      near(math::sqrt(at), std::sqrt(y));
      near(math::log1p(at), std::log1p(y));
    }
  }
}

TEST_CASE("acos, erf, floor and pow of what is wide, or on an edge") {
  auto const is = [](interval const& x, double low, double high) {
    return x.is_number() && mpfr_cmp_d(x.lower(), low) == 0 && mpfr_cmp_d(x.upper(), high) == 0;
  };
  CHECK(math::acos(interval(1)).is_zero());
  CHECK(math::acos(interval(1.5)).is_nan());
  CHECK_FALSE(math::acos(hull(0.5, 1.5)).is_number());
  CHECK_FALSE(math::acos(hull(0.5, 1.5)).is_nan());
  CHECK(is(math::erf(hull(-infinity, infinity)), -1, 1));
  CHECK(is(math::floor(hull(-0.5, 2.5)), -1, 2));
  CHECK(is(math::pow(hull(2, 3), interval(2)), 4, 9));
  CHECK(is(math::pow(hull(-3, 2), interval(2)), 0, 9));
  CHECK(is(math::pow(hull(-3, 2), interval(3)), -27, 8));
  CHECK(is(math::pow(hull(-4, -2), interval(-1)), -0.5, -0.25));
  CHECK(is(math::pow(hull(0.5, 2), hull(-1, 2)), 0.25, 4));
  CHECK(is(math::pow(interval(), hull(-1, 1)), 0, infinity));
  CHECK(is(math::pow(hull(-1, 1), interval()), 1, 1));
  CHECK(is(math::pow(interval(1), interval::nan()), 1, 1));
  CHECK(math::pow(hull(-3, -2), interval(0.5)).is_nan());
  CHECK_FALSE(math::pow(hull(-1, 1), interval(-1)).is_number());
  CHECK_FALSE(math::pow(hull(-1, 1), interval(0.5)).is_number());
}

TEST_CASE("the curvature of log(1 + k x) / k: series and quotient agree where both hold") {
  // (log(1 + z) - z / (1 + z)) / z^2 at 1/16, by the quotient with more bits than it loses.
  for (double const z : {0.0625, -0.0625, 0x1p-20}) {
    interval const by_series = scalar<interval>::log1p_curvature(interval(z));
    working_precision const more(512);
    interval const total = interval(1) + interval(z);
    interval const direct = (math::log(total) - interval(z) / total) / (interval(z) * interval(z));
    CHECK(contains(by_series, direct));
    CHECK((by_series - direct < interval(0x1p-100)).holds());
  }
  interval const at_zero = scalar<interval>::log1p_curvature(interval());
  CHECK((at_zero == interval(0.5)).holds());
}

TEST_CASE("rounding to a format is one rounding, ties to even") {
  auto const rounded = [](interval const& x, storage s) { return nearest(x.lower(), s); };
  CHECK(rounded(interval(65519.99), storage::fp16) == 65504);
  CHECK(rounded(interval(65520), storage::fp16) == infinity);
  CHECK(rounded(interval(0x1p-25), storage::fp16) == 0);
  CHECK(rounded(interval(0x1.8p-24), storage::fp16) == 0x1p-23);
  CHECK(rounded(interval(-0x1.01p0), storage::bf16) == -1);
  CHECK(rounded(interval(-0x1.03p0), storage::bf16) == -0x1.04p0);
  // By way of float the last bit is lost before it can break the tie.
  interval const above_tie = interval(1 + 0x1p-11) + interval(0x1p-60);
  CHECK(rounded(above_tie, storage::fp16) == 1 + 0x1p-10);
  CHECK(attune::certify::rounded_to(storage::fp16, 1 + 0x1p-11 + 0x1p-52) == 1);
  CHECK(rounded(interval(0x1p-1074) / interval(2), storage::fp64) == 0);
  CHECK(rounded(interval(0x1.8p-1074) / interval(2), storage::fp64) == 0x1p-1074);
  CHECK(rounded(interval(1) / interval(3), storage::fp64) == 1. / 3);
  CHECK(rounded(interval(1) / interval(3), storage::fp32) == double(1.f / 3));
  CHECK(rounded(math::exp(interval(1000)), storage::fp64) == infinity);
  CHECK(rounded(interval(std::numeric_limits<double>::max()), storage::fp64) == std::numeric_limits<double>::max());
}

TEST_CASE("an enclosure is decided where both ends round to the same number") {
  CHECK(enclosed(interval(1) / interval(3), storage::fp64).decided);
  CHECK_FALSE(enclosed(hull(1, 1 + 0x1p-52), storage::fp64).decided);
  CHECK(enclosed(hull(1, 1 + 0x1p-52), storage::fp32).decided);
  auto const nothing = enclosed(interval::unknown(), storage::fp64);
  CHECK_FALSE(nothing.decided);
  CHECK(nothing.lower == -infinity);
  auto const nan = enclosed(interval::nan(), storage::fp64);
  CHECK(nan.decided);
  CHECK(std::isnan(nan.rounded));
  auto const third = enclosed(interval(1) / interval(3), storage::bf16);
  CHECK(third.lower <= 1. / 3);
  CHECK(third.upper >= 1. / 3);
  CHECK(std::nextafter(third.lower, 1) == third.upper);
}

TEST_CASE("the simplest number of an interval") {
  CHECK((hull(0.3, 0.9).simplest() == interval(0.625)).holds());  // 4 bits of 0.6
  CHECK((hull(3 - 0x1p-40, 3 + 0x1p-41).simplest() == interval(3)).holds());
  interval const third = (interval(1) / interval(3)).simplest();
  CHECK((third - interval(1) / interval(3)).may_be_zero());
}
