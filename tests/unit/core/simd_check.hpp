// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Functions of SIMD registers against those of long double, on every instruction set that the compiler was allowed to
// use.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <attune/core/simd_math.hpp>

namespace attune::test {
namespace {

/// batch<float>, batch<double> for each instruction set of the list that this translation unit is compiled for.
template <class... Arch>
using supported = decltype(std::tuple_cat(
    std::declval<std::conditional_t<
        Arch::supported(), std::tuple<xsimd::batch<float, Arch>, xsimd::batch<double, Arch>>, std::tuple<>>>()...));
using batches =
    supported<xsimd::avx512bw, xsimd::fma3<xsimd::avx2>, xsimd::avx2, xsimd::avx, xsimd::sse2, xsimd::neon64>;

template <class Batch>
using value = typename Batch::value_type;

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T>
std::vector<T> linear(double low, double high, int count) {
  std::vector<T> x;
  for (int i = 0; i <= count; ++i) x.push_back(T(low + (high - low) * i / count));
  return x;
}

/// sign * 2^low ... sign * 2^high in equal ratios.
template <class T>
std::vector<T> geometric(double sign, double low, double high, int count) {
  std::vector<T> x;
  for (int i = 0; i <= count; ++i) x.push_back(T(sign * std::exp2(low + (high - low) * i / count)));
  return x;
}

template <class T>
std::vector<T> joined(std::vector<std::vector<T>> const& parts) {
  std::vector<T> x;
  for (auto const& part : parts) x.insert(x.end(), part.begin(), part.end());
  return x;
}

/// f on every element of x; each lane of a register holds another element.
template <class Batch, class F>
std::vector<value<Batch>> map(std::vector<value<Batch>> x, F f) {
  std::size_t const size = x.size();
  x.resize((size + Batch::size - 1) / Batch::size * Batch::size, x.back());
  for (std::size_t i = 0; i < x.size(); i += Batch::size) f(Batch::load_unaligned(&x[i])).store_unaligned(&x[i]);
  x.resize(size);
  return x;
}

template <class T>
double ulps(T got, long double want) {
  if (T(want) == got || (std::isnan(want) && std::isnan(got))) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return inf<double>;
  using limits = std::numeric_limits<T>;
  int exponent;
  std::frexp(want, &exponent);
  return double(std::abs(got - want) / std::ldexp(1.0L, std::max(exponent, limits::min_exponent) - limits::digits));
}

template <class Batch>
std::string on() {
  return std::string(" on ") + Batch::arch_type::name();
}

template <class Batch, class F, class Exact>
void check_accuracy(char const* name, std::vector<value<Batch>> const& x, F f, Exact exact, double bound) {
  auto const got = map<Batch>(x, f);
  std::size_t worst = 0;
  double error = -1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const e = ulps(got[i], exact(static_cast<long double>(x[i])));
    if (!(e <= error)) error = e, worst = i;
  }
  CHECK_MESSAGE(error <= bound,
                std::string(name) << on<Batch>() << ": " << error << " ulp at " << x[worst] << ", got " << got[worst]);
}

/// f at given places is exactly what is given; each place is tried in every lane, among different neighbours.
template <class Batch, class F>
void check_values(char const* name, F f, std::vector<std::pair<value<Batch>, value<Batch>>> const& expected) {
  for (std::size_t shift = 0; shift < Batch::size; ++shift) {
    std::vector<value<Batch>> x(shift, value<Batch>(-0.75));
    for (auto const& e : expected) x.push_back(e.first);
    auto const got = map<Batch>(x, f);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto const want = expected[i].second;
      bool const same = std::isnan(want) ? std::isnan(got[shift + i]) : got[shift + i] == want;
      CHECK_MESSAGE(same, std::string(name) << "(" << expected[i].first << ")" << on<Batch>() << " is "
                                            << got[shift + i] << ", not " << want);
    }
  }
}

}  // namespace
}  // namespace attune::test
