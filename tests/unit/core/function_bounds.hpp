// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// sin, cos, acos, erf, pow, floor within the bounds of docs/reference/policies.md: at bit patterns of floats, at random
// arguments.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "simd_check.hpp"

namespace attune::test {
namespace {

auto const sin = [](auto const& x) { return math::sin(x); };
auto const cos = [](auto const& x) { return math::cos(x); };
auto const acos = [](auto const& x) { return math::acos(x); };
auto const erf = [](auto const& x) { return math::erf(x); };
auto const floor = [](auto const& x) { return math::floor(x); };

// Exact enough: double for floats (whose results need 24 of its bits), long double for doubles.
auto const exact_sin = [](auto x) { return std::sin(x); };
auto const exact_cos = [](auto x) { return std::cos(x); };
auto const exact_acos = [](auto x) { return std::acos(x); };
auto const exact_erf = [](auto x) { return std::erf(x); };
auto const exact_floor = [](auto x) { return std::floor(x); };

/// The bounds of docs/reference/policies.md, in ulp. What was measured: floats 0.5 (rounded correctly at every place looked at);
/// doubles 1.56, 1.26, 1.10 and 0.51 without FMA, 1.51, 1.08, 1.11 and 0.51 with it.
struct bounds {
  double turned, erf, acos, pow;
};
template <class T>
constexpr bounds bounds_of = std::is_same_v<T, float> ? bounds{0.501, 0.501, 0.501, 0.501} : bounds{1.75, 1.5, 1.25, 1};

/// f at the float of every `stride`th bit pattern. What one lane computes, every lane does (check_values looks at
/// lanes).
template <class Batch, class F, class Exact>
void check_patterns(char const* name, std::uint64_t stride, F f, Exact exact, double bound) {
  constexpr std::size_t lanes = Batch::size;
  double worst = 0;
  float at = 0;
  alignas(64) float x[lanes], y[lanes];
  for (std::uint64_t pattern = 0; pattern < (std::uint64_t(1) << 32);) {
    for (float& lane : x) lane = std::bit_cast<float>(std::uint32_t(pattern)), pattern += stride;
    f(Batch::load_aligned(x)).store_aligned(y);
    for (std::size_t l = 0; l < lanes; ++l) {
      double const want = exact(double(x[l]));
      if (float(want) == y[l]) continue;
      double const error = ulps(y[l], static_cast<long double>(want));
      if (!(error <= worst)) worst = error, at = x[l];
    }
  }
  CHECK_MESSAGE(worst <= bound, std::string(name) << on<Batch>() << ": " << worst << " ulp at " << at);
}
void check_patterns(std::uint64_t stride) {
  using widest = xsimd::batch<float>;
  bounds const b = bounds_of<float>;
  check_patterns<widest>("sin", stride, sin, exact_sin, b.turned);
  check_patterns<widest>("cos", stride, cos, exact_cos, b.turned);
  check_patterns<widest>("acos", stride, acos, exact_acos, b.acos);
  check_patterns<widest>("erf", stride, erf, exact_erf, b.erf);
  check_patterns<widest>("floor", stride, floor, exact_floor, 0);
}

std::uint32_t fresh_seed() {
  std::uint32_t const seed = std::random_device{}();
  MESSAGE("seed " << seed);
  return seed;
}

/// Random numbers: half of them linear in [-range, range], half of them with random exponents in [low, high].
template <class T>
std::vector<T> random_numbers(std::mt19937_64& draw, std::size_t count, double range, double low, double high) {
  std::uniform_real_distribution<double> linear(-range, range), exponent(low, high);
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = i % 2 == 0 ? T(linear(draw)) : T(std::exp2(exponent(draw)) * ((draw() & 1) != 0 ? 1 : -1));
  return x;
}

template <class Batch>
void check_random(std::size_t count, std::uint32_t seed) {
  using T = value<Batch>;
  CAPTURE(seed);
  std::mt19937_64 draw(seed);
  bounds const b = bounds_of<T>;
  double const high = std::numeric_limits<T>::max_exponent - 1, low = std::numeric_limits<T>::min_exponent;
  for (double const range : {3.2, 1e5, 2e6}) {
    auto const x = random_numbers<T>(draw, count, range, low, high);
    check_accuracy<Batch>("sin", x, sin, exact_sin, b.turned);
    check_accuracy<Batch>("cos", x, cos, exact_cos, b.turned);
  }
  check_accuracy<Batch>("acos", random_numbers<T>(draw, count, 1, -60, 0), acos, exact_acos, b.acos);
  check_accuracy<Batch>("erf", random_numbers<T>(draw, count, 6.5, low, 8), erf, exact_erf, b.erf);
  check_accuracy<Batch>("floor", random_numbers<T>(draw, count, 1e4, -4, std::numeric_limits<T>::digits + 1), floor,
                        exact_floor, 0);

  auto const x = random_numbers<T>(draw, count, 4, -30, 30);
  auto y = random_numbers<T>(draw, count, 40, -10, 6);
  for (std::size_t i = 0; i < count; ++i)
    if (x[i] < 0) y[i] = std::floor(y[i]);
  double worst = 0;
  std::size_t place = 0;
  for (std::size_t i = 0; i + Batch::size <= count; i += Batch::size) {
    T z[Batch::size];
    math::pow(Batch::load_unaligned(&x[i]), Batch::load_unaligned(&y[i])).store_unaligned(z);
    for (std::size_t l = 0; l < Batch::size; ++l) {
      auto const exact = std::pow(static_cast<long double>(x[i + l]), static_cast<long double>(y[i + l]));
      if (std::isinf(T(exact)) && T(exact) == z[l]) continue;
      double const error = ulps(z[l], exact);
      if (!(error <= worst)) worst = error, place = i + l;
    }
  }
  CHECK_MESSAGE(worst <= b.pow, "pow" << on<Batch>() << ": " << worst << " ulp at " << x[place] << ", " << y[place]);
}

}  // namespace
}  // namespace attune::test
