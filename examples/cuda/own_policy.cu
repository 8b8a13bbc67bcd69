// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A normalizer of our own, w_j = a_j^2 / sum a^2, forward and backward on a GPU: the struct that the CPU runs, marked
// ATTUNE_HD.
#include <cstdio>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

using namespace attune;

// [snippet: policy]
struct squared {
  static constexpr auto role = policy_role::normalizer;
  static constexpr normalizer_traits traits{.reference = mass_reference::none};
  template <class T>
  struct bound {
    T shift;
    ATTUNE_HD T earned(T const& a, T const&) const { return (a + shift) * (a + shift); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.logit_shift};
  }
};
// [/snippet]

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::puts("no CUDA device: skipped"), 0;
  constexpr index_t heads = 2, length = 100, width = 64;
  thrust::device_vector<float> x(heads * length * width, 0.5f), y(x.size());
  auto const view = [](auto& v) {
    return tensor<float>(thrust::raw_pointer_cast(v.data()), {1, heads, length, width});
  };
  auto const op = attention(kernel::dot_product{}, squared{}, mask::causal{});
  auto const exec = thrust_on(thrust::device);
  forward(exec, op, {.q = view(x), .k = view(x), .v = view(x)}, {.out = view(y)});
  auto const g = vjp(exec, op, {.q = view(x), .k = view(x), .v = view(x)}, {.out = view(y)});
  std::printf("out %.3f, dv of the last key %.4f\n", float(y[0]), double(g.of(field::v)(0, 0, length - 1, 0)));
}
