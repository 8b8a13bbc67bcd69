// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Sorts numbers by (value, index), digit by digit: from a few hundred numbers on, twice as fast as a comparison sort.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::line::detail {

/// A number and its original index.
struct ranked {
  std::uint64_t digits;
  index_t index;

  /// Finite x as digits with the same order; both zeros are one number.
  static std::uint64_t digits_of(double x) {
    auto const bits = std::bit_cast<std::uint64_t>(x + 0.0);
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
};

/// Sorts by (digits, place in the list); `next` is scratch memory. Digits that are the same everywhere cost nothing:
/// doubles that were converted from floats take four passes of six.
inline void radix_sort(std::vector<ranked>& list, std::vector<ranked>& next) {
  constexpr int bits = 11;
  constexpr std::uint64_t mask = (1 << bits) - 1;
  std::uint64_t any = 0, all = ~std::uint64_t{0};
  for (ranked const& r : list) any |= r.digits, all &= r.digits;
  next.resize(list.size());
  for (int shift = 0; shift < 64; shift += bits) {
    if ((((any ^ all) >> shift) & mask) == 0) continue;
    std::array<std::uint32_t, mask + 2> begin{};
    for (ranked const& r : list) ++begin[((r.digits >> shift) & mask) + 1];
    for (std::size_t d = 1; d <= mask; ++d) begin[d] += begin[d - 1];
    for (ranked const& r : list) next[begin[(r.digits >> shift) & mask]++] = r;
    list.swap(next);
  }
}

}  // namespace attune::line::detail
