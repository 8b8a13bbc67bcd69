// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   one bit per lane  <->  a SIMD mask
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

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

namespace detail {

/// [half sums of a, half sums of b] in each stretch of 2 * Half lanes: the remaining sums of two vectors, kept in one.
template <int Half, class B, std::size_t... L>
ATTUNE_INLINE B joined_halves(B const& a, B const& b, std::index_sequence<L...>) {
  constexpr std::size_t half = Half, n = sizeof...(L);
  return simd::shuffled<(L % (2 * half) < half ? L : n + L)...>(a, b) +
         simd::shuffled<(L % (2 * half) < half ? L + half : n + L - half)...>(a, b);
}

/// Lane l: the sum of the lanes of vector l. Adds by halves: first lanes that are Last / 2 apart. x: vectors First,
/// First + Apart, ...
template <int Half, int Last, int Apart = 1, int First = 0, class B, std::size_t N>
ATTUNE_INLINE B sums_of_vectors(B const (&x)[N]) {
  if constexpr (Half == Last)
    return x[First / Apart];
  else
    return joined_halves<Half>(sums_of_vectors<2 * Half, Last, Apart, First>(x),
                               sums_of_vectors<2 * Half, Last, Apart, First + Half>(x),
                               std::make_index_sequence<std::size_t(B::size)>{});
}

/// The same for vectors in memory, [Last][lanes], aligned.
template <class B, int Last, int Half = 1>
ATTUNE_INLINE B sums_of_rows(typename B::value_type const* x) {
  if constexpr (Half == Last)
    return B::load_aligned(x);
  else
    return joined_halves<Half>(sums_of_rows<B, Last, 2 * Half>(x),
                               sums_of_rows<B, Last, 2 * Half>(x + Half * int(B::size)),
                               std::make_index_sequence<std::size_t(B::size)>{});
}

}  // namespace detail

using detail::sums_of_vectors;

}  // namespace attune::exec_cpu
