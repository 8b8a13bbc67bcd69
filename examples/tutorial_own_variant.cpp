// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A normalizer and a kernel term that the library does not have: checked on every call, forward and gradients.
// [snippet: includes]
#include <iostream>

#include <attune/attune.hpp>
#include <attune/testing.hpp>

using namespace attune;
// [/snippet]

// [snippet: normalizer]
/// Weights softplus(a) / sum softplus(a): a large logit counts linearly, not exponentially.
struct soft_linear {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T shift;
    T earned(T const& logit, T const&) const { return math::softplus(T(logit + shift)); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};
// [/snippet]

// [snippet: kernel]
/// An additive term: strength / (1 + |i - j|), a bonus for keys near the query.
struct near_bonus {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;  // reads positions only
  parameter strength = 1;
  static constexpr auto parameters() { return std::array{listed("strength", &near_bonus::strength)}; }
  template <class T>
  struct bound {
    T strength, position;
    T score(key<T> const& k) const { return strength / (T(1) + math::abs(T(position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(strength), r.position};
  }
};
// [/snippet]

int main() {
  // [snippet: compose]
  auto const op = attention(kernel::dot_product{} + near_bonus{2.0}, soft_linear{}, mask::causal{});
  // [/snippet]

  // [snippet: check]
  auto const computed = testing::check_forward(op, {.heads = 2, .queries = 5, .keys = 75, .width = 16}, 1);
  auto const slopes = testing::check_gradients(op, {.heads = 2, .queries = 5, .keys = 7, .width = 4}, 1);
  std::cout << computed << slopes;
  return computed.passed() && slopes.passed() ? 0 : 1;
  // [/snippet]
}
