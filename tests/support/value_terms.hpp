// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A value term of a user, and tables for value terms.
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include <attune/policies.hpp>

namespace attune::test {

// [snippet: periodic]
/// t_n with n = distance mod R: neighboring distances read different rows, far ones the same.
struct periodic_term {
  static constexpr auto role = policy_role::value_term;
  table vectors;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("vectors", &periodic_term::vectors, table_width::any)}; }
  ATTUNE_HD index_t index(index_t distance) const {
    index_t const period = vectors.rows(), n = distance % period;
    return n < 0 ? n + period : n;
  }
};
// [/snippet]

/// A table of floats. It must outlive the operators that read it.
struct vectors_of_term {
  shape extents;
  std::vector<float> numbers;
  vectors_of_term(shape const& e, unsigned seed = 1) : extents(e) {
    std::uint32_t x = 2463534242u + 977u * seed;
    for (index_t n = 0; n < e.size(); ++n) {
      x ^= x << 13, x ^= x >> 17, x ^= x << 5;
      numbers.push_back(float(x % 4001) / 2000 - 1);
    }
  }
  operator table() const { return table(tensor<float const>(numbers, extents)); }
};

}  // namespace attune::test
