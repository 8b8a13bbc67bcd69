// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the forbidden snippets are written against.
#pragma once

#include <tuple>
#include <vector>

#include <attune/attune.hpp>

using namespace attune;

inline std::vector<float> memory(8);
inline std::vector<double> wide_memory(8);
inline tensor<float> const x(memory, {1, 1, 1, 8}), y(memory, {1, 1, 1, 8});
inline tensor<double> const wide(wide_memory, {1, 1, 1, 8});

inline constexpr auto plain = attention(kernel::dot_product{});
inline constexpr auto gated = attention(kernel::dot_product{}, gate::softplus{0.5});
inline constexpr auto with_ground = attention(kernel::dot_product{}, normalizer::grounded{0.5});
inline constexpr auto scored = attention(kernel::given_scores{});

struct undivided_mass {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.divided_by = divisor::one, .reference = mass_reference::none};
  template <class T>
  struct bound {
    T earned(T const& a, T const&) const { return math::sigmoid(a); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
inline constexpr auto undivided = attention(kernel::dot_product{}, undivided_mass{});
