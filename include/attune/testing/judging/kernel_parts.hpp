// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   has_rotary_layout<Kernel>, turn_layout(kernel)      is_product(contractions, n), only_products(contractions)
//
// Facts about the kernels of an operator that defects change.
#pragma once

#include <type_traits>

#include <attune/core/rotary_angles.hpp>
#include <attune/policies/contraction.hpp>

namespace attune::testing::detail {

/// Whether a kernel, or one of those that it adds or maps, turns pairs of features.
template <class Kernel>
inline constexpr bool has_rotary_layout = [] {
  if constexpr (requires(Kernel& k) { k.layout; })
    return true;
  else if constexpr (requires(Kernel& k) { k.first, k.second; })
    return has_rotary_layout<decltype(Kernel::first)> || has_rotary_layout<decltype(Kernel::second)>;
  else if constexpr (requires(Kernel& k) { k.inner; })
    return has_rotary_layout<decltype(Kernel::inner)>;
  else
    return false;
}();
/// Makes it turn the pairs of the other layout.
template <class Kernel>
void turn_layout([[maybe_unused]] Kernel& k) {
  if constexpr (requires { k.layout; })
    k.layout = k.layout == rotary_layout::half ? rotary_layout::interleaved : rotary_layout::half;
  else if constexpr (requires { k.first, k.second; })
    turn_layout(k.first), turn_layout(k.second);
  else if constexpr (requires { k.inner; })
    turn_layout(k.inner);
}

/// Whether contraction number n is <x_i, y_j>, which depends on no parameter and on no position.
template <class... C>
constexpr bool is_product(contraction::list<C...>, [[maybe_unused]] int n) {
  [[maybe_unused]] int k = 0;
  return (... || (k++ == n && contraction::PlainProduct<C>));
}
/// Whether all of them are.
template <class... C>
constexpr bool only_products(contraction::list<C...>) {
  return (... && contraction::PlainProduct<C>);
}

}  // namespace attune::testing::detail
