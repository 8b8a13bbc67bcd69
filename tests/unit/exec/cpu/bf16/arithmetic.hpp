// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The arithmetic of the units of bf16 products, number by number, from the manuals of the processors and not from the
// code under test. And how bits are compared.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/pairs.hpp>

namespace attune::test {

/// Calls visit(unit) if the machine that this is compiled for has the unit.
template <class Unit, class Visit>
void if_there(Visit const& visit) {
  if constexpr (Unit::there) visit(Unit{});
}
/// Calls visit(unit) for the twins that add pair by pair, and for the instructions where there are any.
template <class Visit>
void each_pair_unit(Visit const& visit) {
  visit(bf16_emulated{});
  visit(bfdot_emulated{});
  if_there<bf16_instructions>(visit);
}

/// Numbers below 2^-126 are 0, with their sign.
inline float flushed_number(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// VDPBF16PS: the upper product, then the lower one, each with one rounding.
struct pair_sum_of_avx512 {
  static float add(float sum, float a, float b, float upper_a, float upper_b) {
    auto const product = [](float x, float y, float to) {
      return flushed_number(std::fma(flushed_number(x), flushed_number(y), flushed_number(to)));
    };
    return product(a, b, product(upper_a, upper_b, sum));
  }
};
/// BFDOT: both products, then their sum, then the sum so far; sums round to odd.
struct pair_sum_of_arm {
  static float add(float sum, float a, float b, float upper_a, float upper_b) {
    auto const product = [](float x, float y) { return flushed_number(flushed_number(x) * flushed_number(y)); };
    return to_odd(sum, to_odd(product(a, b), product(upper_a, upper_b)));
  }

 private:
  /// By the processor's rounding toward zero and its flags: a truncated sum gets an odd last bit if it is inexact.
  static float to_odd(float x, float y) {
    int const before = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    std::feclearexcept(FE_ALL_EXCEPT);
    float const volatile a = flushed_number(x), b = flushed_number(y);
    float const volatile sum = a + b;
    bool const inexact = std::fetestexcept(FE_INEXACT) != 0, overflow = std::fetestexcept(FE_OVERFLOW) != 0;
    std::fesetround(before);
    if (overflow) return std::copysign(HUGE_VALF, sum);
    // Toward zero is also the rule of an exact zero: it is positive, and so it is by rounding to nearest.
    return flushed_number(std::bit_cast<float>(std::bit_cast<std::uint32_t>(float(sum)) | (inexact ? 1u : 0u)));
  }
};

/// sum + the products of a pair, as the unit must compute it.
template <class Unit>
using pair_sum_of =
    std::conditional_t<std::is_same_v<typename Unit::twin, bfdot_emulated>, pair_sum_of_arm, pair_sum_of_avx512>;

/// A copy that batches may be read from.
template <class T>
class aligned_copy {
 public:
  explicit aligned_copy(std::vector<T> const& x) : memory_(index_t(x.size()) + 1) {
    std::copy(x.begin(), x.end(), memory_.data());
  }
  T* data() { return memory_.data(); }

 private:
  exec_cpu::aligned_buffer<T> memory_;
};

/// How many numbers differ in a bit. All NaN are equal.
inline int count_different(float const* a, std::vector<float> const& b) {
  int different = 0;
  for (std::size_t n = 0; n < b.size(); ++n)
    different += !(std::bit_cast<std::uint32_t>(a[n]) == std::bit_cast<std::uint32_t>(b[n]) ||
                   (std::isnan(a[n]) && std::isnan(b[n])));
  return different;
}

}  // namespace attune::test
