// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled with -ffast-math and ATTUNE_ALLOW_FAST_MATH: what docs/reference/portability.md promises to those who insist; and with
// -fassociative-math, which compilers do not announce. Nothing here may ask the compiler whether a number is NaN or
// infinite; bits tell.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>

namespace attune::test {
namespace {

constexpr index_t positions = 20, width = 8;
constexpr std::uint32_t infinity_bits = 0x7f800000u;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
bool is_nan(float x) { return (bits(x) & 0x7fffffffu) > infinity_bits; }
bool is_minus_infinity(float x) { return bits(x) == (infinity_bits | 0x80000000u); }

std::size_t at(index_t i, index_t d) { return std::size_t(i * width + d); }

struct numbers {
  std::vector<float> q, k, v, out, bias, lse;
  numbers()
      : q(positions * width), k(q.size()), v(q.size()), out(q.size(), 7.f), bias(positions * positions),
        lse(positions, 7.f) {
    for (std::size_t n = 0; n < q.size(); ++n) {
      q[n] = float(n % 7) * 0.3f - 1;
      k[n] = float(n % 5) * 0.4f - 1;
      v[n] = float(n % 11) - 5;
    }
  }
  static constexpr shape rows{1, 1, positions, width}, pairs{1, 1, positions, positions}, one_each{1, 1, positions, 1};
};

TEST_CASE("NaN in keys and values that a row does not see does not reach it") {
  numbers x;
  constexpr index_t seen = 12;
  for (std::size_t n = at(seen, 0); n < x.k.size(); ++n) x.k[n] = x.v[n] = std::bit_cast<float>(0x7fc00000u);
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  forward(cpu{serial{}}, op, {.q = {x.q.data(), x.rows}, .k = {x.k.data(), x.rows}, .v = {x.v.data(), x.rows}},
          {.out = {x.out.data(), x.rows}});
  int leaked = 0;
  for (index_t i = 0; i < seen; ++i)
    for (index_t d = 0; d < width; ++d) leaked += is_nan(x.out[at(i, d)]);
  CHECK(leaked == 0);
}

TEST_CASE("A row whose logits are all -inf is 0, with lse -inf; one key alone gives its value") {
  numbers x;
  float const off = std::bit_cast<float>(infinity_bits | 0x80000000u);
  for (index_t j = 0; j < positions; ++j) x.bias[std::size_t(3 * positions + j)] = off;
  for (index_t j = 1; j < positions; ++j) x.bias[std::size_t(5 * positions + j)] = off;
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, normalizer::softmax{});
  tensor lse(x.lse, x.one_each);
  forward(cpu{serial{}}, op,
          {.q = {x.q.data(), x.rows},
           .k = {x.k.data(), x.rows},
           .v = {x.v.data(), x.rows},
           .bias = {x.bias.data(), x.pairs}},
          {.out = {x.out.data(), x.rows}, .lse = natural_lse(lse)});
  for (index_t d = 0; d < width; ++d) {
    CHECK((bits(x.out[at(3, d)]) & 0x7fffffffu) == 0);
    CHECK(std::fabs(x.out[at(5, d)] - x.v[at(0, d)]) <= 1e-6f * std::fabs(x.v[at(0, d)]));
  }
  CHECK(is_minus_infinity(x.lse[3]));
}

TEST_CASE("The error stays below 1e-5 with logits 80 apart") {
  numbers x;
  for (index_t i = 0; i < positions; ++i)
    for (index_t j = 0; j < positions; ++j)
      x.bias[std::size_t(i * positions + j)] = float((i * 37 + j * 91) % 101) * 0.8f - 40.f;
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, normalizer::softmax{});
  forward(cpu{serial{}}, op,
          {.q = {x.q.data(), x.rows},
           .k = {x.k.data(), x.rows},
           .v = {x.v.data(), x.rows},
           .bias = {x.bias.data(), x.pairs}},
          {.out = {x.out.data(), x.rows}});
  double worst = 0;
  for (index_t i = 0; i < positions; ++i) {
    double logits[positions], top = -1e300, mass = 0;
    for (index_t j = 0; j < positions; ++j) {
      double product = 0;
      for (index_t d = 0; d < width; ++d) product += double(x.q[at(i, d)]) * double(x.k[at(j, d)]);
      logits[j] = product / std::sqrt(double(width)) + double(x.bias[std::size_t(i * positions + j)]);
      top = std::fmax(top, logits[j]);
    }
    for (double const a : logits) mass += std::exp(a - top);
    for (index_t d = 0; d < width; ++d) {
      double sum = 0;
      for (index_t j = 0; j < positions; ++j) sum += std::exp(logits[j] - top) * double(x.v[at(j, d)]);
      worst = std::fmax(worst, std::fabs(sum / mass - double(x.out[at(i, d)])));
    }
  }
  CHECK(worst < 1e-5);
}

/// The largest error of f, in units in the last place of the exact result, at x = sign 2^e (1 + n / 8), e in [low,
/// high].
template <class T, class F, class Exact>
double worst_ulp(F const& f, Exact const& exact, double sign, int low, int high) {
  using batch = xsimd::batch<T>;
  double worst = 0;
  for (int e = low; e <= high; ++e)
    for (int n = 0; n < 8; ++n) {
      T const x = T(sign * std::ldexp(1 + n / 8.0, e));
      alignas(64) T lanes[batch::size];
      f(batch(x)).store_aligned(lanes);
      long double const right = exact(static_cast<long double>(x));
      int exponent = 0;
      std::frexp(right, &exponent);
      double const unit = std::ldexp(1.0, exponent - std::numeric_limits<T>::digits);
      worst = std::fmax(worst, std::fabs(double(static_cast<long double>(lanes[0]) - right)) / unit);
    }
  return worst;
}

TEST_CASE_TEMPLATE("Functions that live on what rounding does keep their accuracy", T, float, double) {
  auto const exp = [](auto const& x) { return math::exp(x); };
  auto const expm1 = [](auto const& x) { return math::expm1(x); };
  auto const log = [](auto const& x) { return math::log(x); };
  auto const log1p = [](auto const& x) { return math::log1p(x); };
  auto const weight = [](auto const& x) { return math::exp_nonpositive(x); };
  constexpr double few = 3;
  CHECK(worst_ulp<T>(exp, [](long double x) { return std::exp(x); }, 1, -40, 5) < few);
  CHECK(worst_ulp<T>(exp, [](long double x) { return std::exp(x); }, -1, -40, 5) < few);
  CHECK(worst_ulp<T>(weight, [](long double x) { return std::exp(x); }, -1, -40, 5) < few);
  CHECK(worst_ulp<T>(expm1, [](long double x) { return std::expm1(x); }, 1, -60, 5) < few);
  CHECK(worst_ulp<T>(expm1, [](long double x) { return std::expm1(x); }, -1, -60, 3) < few);
  CHECK(worst_ulp<T>(log, [](long double x) { return std::log(x); }, 1, -60, 60) < few);
  CHECK(worst_ulp<T>(log1p, [](long double x) { return std::log1p(x); }, 1, -60, 60) < few);
  CHECK(worst_ulp<T>(log1p, [](long double x) { return std::log1p(x); }, -1, -60, -2) < few);
  for (double const sign : {-1.0, 1.0}) {
    CHECK(worst_ulp<T>([](auto const& x) { return math::sin(x); }, [](long double x) { return std::sin(x); }, sign, -20,
                       9) < few);
    CHECK(worst_ulp<T>([](auto const& x) { return math::cos(x); }, [](long double x) { return std::cos(x); }, sign, -20,
                       9) < few);
    CHECK(worst_ulp<T>([](auto const& x) { return math::erf(x); }, [](long double x) { return std::erf(x); }, sign, -20,
                       2) < few);
    CHECK(worst_ulp<T>([](auto const& x) { return math::acos(x); }, [](long double x) { return std::acos(x); }, sign,
                       -20, -1) < few);
    CHECK(worst_ulp<T>([](auto const& x) { return math::floor(x); }, [](long double x) { return std::floor(x); }, sign,
                       -3, 60) == 0);
  }
}

}  // namespace
}  // namespace attune::test
