// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators for snippets that call an executor.
#pragma once

#include <attune/attune.hpp>

#include "policies.hpp"

inline std::vector<double> wide_memory(8);
inline tensor<double> const wide(wide_memory, {1, 1, 1, 8});

inline constexpr auto plain = attention(kernel::dot_product{});
inline constexpr auto gated = attention(kernel::dot_product{}, gate::softplus{0.5});
inline constexpr auto with_ground = attention(kernel::dot_product{}, normalizer::grounded{0.5});
inline constexpr auto scored = attention(kernel::given_scores{});

// A kernel of an ordered sum.
struct softplus_of {
  template <class T>
  static T map(T const& x) {
    return -math::softplus(x);
  }
};
template <class Sum>
using summed = kernel_of<score_of_two, Sum>;
using later = contraction::later_sum<contraction::dot, softplus_of>;
using earlier = contraction::earlier_sum<contraction::dot, softplus_of>;
