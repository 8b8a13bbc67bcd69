// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// sin, cos, acos, erf, pow, floor on SIMD registers and on floats: errors in units in the last place (ulp) over bit
// patterns and random arguments, and the special values lane by lane.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "function_bounds.hpp"

namespace attune::test {
namespace {

TEST_CASE_TEMPLATE_DEFINE("sin, cos, acos, erf, pow, floor: random arguments", Batch, random_id) {
  check_random<Batch>(std::is_same_v<value<Batch>, float> ? 20000 : 100000, 1);
  check_random<Batch>(2000, fresh_seed());
}

TEST_CASE_TEMPLATE_DEFINE("sin, cos: next to the multiples of pi / 2, near and far", Batch, multiples_id) {
  using T = value<Batch>;
  std::vector<T> x;
  long double const half_pi = 1.57079632679489661923132169163975144L;
  for (long n = 1; n < 4000; n += n < 300 ? 1 : 37)
    for (int i = -2; i <= 2; ++i)
      x.push_back(T(half_pi * (long double)n) + T(i) * std::numeric_limits<T>::epsilon() * T(n));
  for (int e = 12; e < 40; ++e)
    for (int i = 0; i < 40; ++i) x.push_back(T(half_pi * std::ldexp(1.0L + i / 64.0L, e)));
  for (int e = 18; e <= 22; ++e)
    for (T const s : {T(-1), T(1)})
      x.push_back(s * T(std::ldexp(1.0, e))), x.push_back(s * std::nextafter(T(std::ldexp(1.0, e)), T(0)));
  check_accuracy<Batch>("sin", x, sin, exact_sin, bounds_of<T>.turned);
  check_accuracy<Batch>("cos", x, cos, exact_cos, bounds_of<T>.turned);
}

TEST_CASE_TEMPLATE_DEFINE("sin, cos, acos, erf, floor: special values, in every lane", Batch, special_id) {
  using T = value<Batch>;
  using limits = std::numeric_limits<T>;
  T const tiny = limits::denorm_min(), most = limits::max(), pi = std::acos(T(-1)), half_pi = std::acos(T(0));
  check_values<Batch>(
      "sin", sin,
      {{T(0), T(0)}, {tiny, tiny}, {inf<T>, nan<T>}, {-inf<T>, nan<T>}, {nan<T>, nan<T>}, {most, std::sin(most)}});
  check_values<Batch>(
      "cos", cos,
      {{T(0), T(1)}, {tiny, T(1)}, {inf<T>, nan<T>}, {-inf<T>, nan<T>}, {nan<T>, nan<T>}, {most, std::cos(most)}});
  check_values<Batch>("acos", acos,
                      {{T(1), T(0)},
                       {T(-1), pi},
                       {T(0), half_pi},
                       {std::nextafter(T(1), T(2)), nan<T>},
                       {T(-2), nan<T>},
                       {inf<T>, nan<T>},
                       {nan<T>, nan<T>}});
  check_values<Batch>(
      "erf", erf,
      {{T(0), T(0)}, {T(7), T(1)}, {T(-7), T(-1)}, {inf<T>, T(1)}, {-inf<T>, T(-1)}, {most, T(1)}, {nan<T>, nan<T>}});
  T const last = T(1) / limits::epsilon();  // from here on every number is an integer
  check_values<Batch>("floor", floor,
                      {{T(0.5), T(0)},
                       {T(-0.5), T(-1)},
                       {T(-3), T(-3)},
                       {-tiny, T(-1)},
                       {tiny, T(0)},
                       {last - T(0.5), last - 1},
                       {last, last},
                       {T(-last + T(0.5)), -last},
                       {most, most},
                       {-most, -most},
                       {inf<T>, inf<T>},
                       {-inf<T>, -inf<T>},
                       {nan<T>, nan<T>}});
}

TEST_CASE_TEMPLATE_DEFINE("pow: all pairs of special values, as the C library has them", Batch, pow_id) {
  using T = value<Batch>;
  using limits = std::numeric_limits<T>;
  T const places[]{T(-0.0), T(0),   inf<T>, -inf<T>, nan<T>, limits::max(), limits::denorm_min(),
                   T(1),    T(-1),  T(2),   T(3),    T(-2),  T(-3),         T(0.5),
                   T(-0.5), T(1.5), T(-1.5)};
  for (T const x : places)
    for (T const y : places) {
      CAPTURE(x);
      CAPTURE(y);
      T lanes[Batch::size];
      math::pow(Batch(x), Batch(y)).store_unaligned(lanes);
      T const want = std::pow(x, y);
      for (T const got : lanes) {
        CHECK((std::isnan(want) ? std::isnan(got)
                                : got == want || std::fabs(got - want) <= limits::epsilon() * std::fabs(want)));
        if (!std::isnan(want)) CHECK(std::signbit(got) == std::signbit(want));
      }
    }
}

TEST_CASE_TEMPLATE_APPLY(random_id, batches);
TEST_CASE_TEMPLATE_APPLY(multiples_id, batches);
TEST_CASE_TEMPLATE_APPLY(special_id, batches);
TEST_CASE_TEMPLATE_APPLY(pow_id, batches);

TEST_CASE("floats: every 257th bit pattern") { check_patterns(257); }

TEST_CASE("one float: the C library's, within an ulp at every 65,537th bit pattern") {
  for (std::uint64_t pattern = 0; pattern < (std::uint64_t(1) << 32); pattern += 65537) {
    float const x = std::bit_cast<float>(std::uint32_t(pattern));
    double const wide = double(x);
    CAPTURE(x);
    CHECK(ulps(math::sin(x), std::sin(wide)) <= 1);
    CHECK(ulps(math::cos(x), std::cos(wide)) <= 1);
    CHECK(ulps(math::acos(x), std::acos(wide)) <= 1);
    CHECK(ulps(math::erf(x), std::erf(wide)) <= 1);
    CHECK(ulps(math::floor(x), std::floor(wide)) == 0);
    CHECK(ulps(math::pow(std::fabs(x), 0.3f), std::pow(std::fabs(wide), double(0.3f))) <= 1);
  }
}

}  // namespace
}  // namespace attune::test
