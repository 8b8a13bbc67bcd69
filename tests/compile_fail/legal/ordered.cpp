// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal form of what ordered.hpp is included for.
#include "../ordered.hpp"

#include "../operators.hpp"

struct with_bound {
  template <class Bound, class T>
  static T map(Bound const&, T const& x) {
    return x;
  }
};
auto one_order = attention(summed<later>{} + summed<contraction::later_sum_with_own<contraction::dot, with_bound>>{});
int main() { forward(cpu{}, attention(summed<later>{}), {.q = x, .k = x, .v = x}, {.out = y}); }
