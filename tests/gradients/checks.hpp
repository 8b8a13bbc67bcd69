// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The checks every operator goes through: differences of the 50-digit forward pass, duals end to end, second order.
#pragma once

#include <algorithm>

#include <doctest/doctest.h>

#include "gradients/subject.hpp"

namespace attune::test {

/// Central difference of order 4 at steps of 2^-30: the error is that of the fifth derivative times 1e-37.
template <class F>
auto difference(F const& f) {
  digits const h(0x1p-30);
  return (digits(8) * (f(1) - f(-1)) - (f(2) - f(-2))) / (digits(12) * h);
}

template <class T>
T largest(gradients_by_block<T> const& g) {
  T most(0);
  for (auto const& [name, values] : g)
    for (T const& x : values) most = std::max(most, math::abs(x));
  return most;
}

/// Every gradient, by a few entries of each block, against differences; and in double against 50 digits.
inline void check_against_differences(subject const& s, int entries = 4) {
  INFO(s.name);
  auto const g = s.gradient(s.data);
  auto const in_double = s.gradient_in_double(s.data);
  digits const scale = largest(g);
  REQUIRE(scale > 0.01);
  rng random(7);
  for (auto const& entry : g) {  // no structured binding: clang 14 captures none
    auto const& name = entry.first;
    auto const& values = entry.second;
    INFO(name);
    block const& b = s.data.at(name);
    digits block_scale(0);
    for (std::size_t n = 0; n < values.size(); ++n) {
      INFO(n);
      block_scale = std::max(block_scale, math::abs(values[n]));
      CHECK(double(math::abs(digits(digits(in_double.at(name)[n]) - values[n])) / scale) < 1e-13);
    }
    if (std::count(s.still.begin(), s.still.end(), name) > 0)
      CHECK(double(block_scale / scale) < 1e-40);
    else
      CHECK(block_scale > scale * 1e-20);  // else the block takes no part and nothing is tested
    if (b.is == kind::value) continue;
    for (int e = 0; e < entries; ++e) {
      std::size_t const n = std::size_t(random.between(0, index_t(values.size()) - 1));
      INFO(n);
      digits const expected = difference([&](int steps) {
        problem p = s.data;
        p.numbers.at(name).values[n] += steps * 0x1p-30;
        return s.objective(p);
      });
      INFO(double(values[n]));
      INFO(double(expected));
      CHECK(double(math::abs(digits(values[n] - expected)) / scale) < 1e-30);
    }
  }
}

/// Everything moves at once: duals from end to end against the gradients.
inline void check_against_duals(subject const& s) {
  INFO(s.name);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    direction const t = random_direction(s.data, seed, false);
    auto const r = s.routes(s.data, t);
    REQUIRE(r.magnitude > 0.01);
    CHECK(double(math::abs(digits(r.forward - r.backward)) / r.magnitude) < 1e-40);
    auto const d = s.routes_in_double(s.data, t);
    CHECK(std::fabs(d.forward - d.backward) / d.magnitude < 1e-13);
  }
}

/// Gradients along a direction in which everything moves, cotangents too, against differences of gradients; and the
/// Hessian is symmetric. A `value` of a projection moves alone, which no difference of its sources can follow: only
/// symmetry then.
inline void check_second_order(subject const& s) {
  INFO(s.name);
  bool const moves_sources = std::any_of(s.data.numbers.begin(), s.data.numbers.end(),
                                         [](auto const& b) { return b.second.is == kind::value; });
  if (!moves_sources) {
    direction const t = random_direction(s.data, 3, true);
    auto const along = s.gradient_along(s.data, t);
    digits const scale = largest(along);
    REQUIRE(scale > 0.01);
    auto const at = [&](int steps) { return s.gradient(moved(s.data, t, steps)); };
    auto const p2 = at(2), p1 = at(1), m1 = at(-1), m2 = at(-2);
    for (auto const& entry : along) {  // no structured binding: clang 14 captures none
      auto const& name = entry.first;
      auto const& values = entry.second;
      INFO(name);
      for (std::size_t n = 0; n < values.size(); ++n) {
        INFO(n);
        digits const expected = difference([&](int steps) {
          return (steps == 2 ? p2 : steps == 1 ? p1 : steps == -1 ? m1 : m2).at(name)[n];
        });
        INFO(double(values[n]));
        INFO(double(expected));
        CHECK(double(math::abs(digits(values[n] - expected)) / scale) < 1e-28);
      }
    }
  }
  direction const t = random_direction(s.data, 4, false), u = random_direction(s.data, 5, false);
  auto const by_t = s.gradient_along(s.data, t), by_u = s.gradient_along(s.data, u);
  digits t_first(0), u_first(0), magnitude(0);
  for (auto const& entry : by_t) {  // no structured binding: clang 14 captures none
    auto const& name = entry.first;
    auto const& values = entry.second;
    kind const is = s.data.at(name).is;
    if (is == kind::x || is == kind::weight || is == kind::bias) continue;
    for (std::size_t n = 0; n < values.size(); ++n) {
      digits const part = values[n] * digits(u.numbers.at(name).values[n]);
      t_first += part;
      magnitude += math::abs(part);
      u_first += by_u.at(name)[n] * digits(t.numbers.at(name).values[n]);
    }
  }
  CHECK(double(math::abs(digits(t_first - u_first)) / magnitude) < 1e-40);
}

inline void check_derivatives(subject const& s) {
  check_against_differences(s);
  check_against_duals(s);
  check_second_order(s);
}

}  // namespace attune::test
