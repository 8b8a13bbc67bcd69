// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   lane l of the result  =  sum of the lanes of vector l
//
// Horizontal sums of several vectors at once. Each of log2(lanes) steps halves two vectors and keeps the results in
// one.
#pragma once

#include <cstddef>
#include <utility>

#include <attune/core/xsimd.hpp>

namespace attune::exec_cpu::detail {

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

}  // namespace attune::exec_cpu::detail

namespace attune::exec_cpu {
using detail::sums_of_vectors;
}  // namespace attune::exec_cpu
