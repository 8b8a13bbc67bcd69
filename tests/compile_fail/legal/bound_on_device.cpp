// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The nearest legal program to ../owning_bound_on_device.cpp.
#include <attune/exec/thrust/device_ready.hpp>
#include <attune/policies.hpp>

using namespace attune;

struct mine {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{};
  template <class T>
  struct bound {
    T level[2];
    T earned(T const& a, T const& m) const { return math::exp_nonpositive(T(a - m)); }
  };
  template <class T>
  bound<T> bind(row<T> const&) const {
    return {{T(0), T(1)}};
  }
};
using op = decltype(attention(kernel::dot_product{}, mine{}));
static_assert(exec_thrust::require_device_ready<op>());
int main() {}
