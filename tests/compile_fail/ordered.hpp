// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel of an ordered sum.
#pragma once

#include <attune/policies.hpp>

using namespace attune;

struct softplus_of {
  template <class T>
  static T map(T const& x) {
    return -math::softplus(x);
  }
};
template <class Sum>
struct summed {
  static constexpr auto role = policy_role::kernel;
  using contraction = Sum;
  template <class T>
  struct bound {
    T score(T const& x, T const& sum, key<T> const&) const { return x + sum; }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {};
  }
};
using later = contraction::later_sum<contraction::dot, softplus_of>;
using earlier = contraction::earlier_sum<contraction::dot, softplus_of>;
