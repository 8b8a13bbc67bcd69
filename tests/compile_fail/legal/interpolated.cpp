// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal form of what interpolated.hpp is included for.
#include "../interpolated.hpp"

#include "../operators.hpp"

struct three_numbers {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::interpolated<later>;
  template <class T>
  struct bound {
    T score(T const& x, T const&, T const& z, key<T> const&) const { return x + z; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
auto named_alone = attention(three_numbers{});
int main() { forward(cpu{}, attention(positions{}), {.q = x, .k = x, .v = x, .position_scores = x}, {.out = y}); }
