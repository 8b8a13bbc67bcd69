// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   one bit per lane  <->  a SIMD mask
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/core/simd_math.hpp>

namespace attune::exec_cpu {

/// The lanes whose bit is set, as a SIMD mask.
template <class T, class Arch>
ATTUNE_INLINE xsimd::batch_bool<T, Arch> lanes_of(std::uint64_t bits) {
  using lanes = xsimd::batch_bool<T, Arch>;
  using integer = xsimd::as_integer_t<T>;
  using batch = xsimd::batch<integer, Arch>;
  if constexpr (simd::compares_into_bits<T, Arch>)  // AVX-512: the mask register itself
    return lanes(typename lanes::register_type(bits));
  alignas(64) static constexpr auto lane_bit = [] {
    struct {
      integer at[batch::size];
    } table{};
    for (std::size_t l = 0; l < batch::size; ++l) table.at[l] = integer(1) << l;
    return table;
  }();
  // By conversion instead of a cast of the comparison: xsimd renamed that cast between releases.
  return simd::to_numbers(batch(integer(bits)) & batch::load_aligned(lane_bit.at)) > xsimd::batch<T, Arch>(T(0));
}

/// The inverse: one bit per lane.
template <class T, class Arch>
ATTUNE_INLINE std::uint64_t bits_of(xsimd::batch_bool<T, Arch> const& lanes) {
  if constexpr (simd::compares_into_bits<T, Arch>) {
    return std::uint64_t(lanes.data);  // AVX-512: the mask register itself
  } else {
    constexpr std::size_t count = xsimd::batch<T, Arch>::size;
    alignas(64) bool set[count];
    lanes.store_aligned(set);
    std::uint64_t bits = 0;
    for (std::size_t l = 0; l < count; ++l) bits |= std::uint64_t(set[l]) << l;
    return bits;
  }
}

}  // namespace attune::exec_cpu
