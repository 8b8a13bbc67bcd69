// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A score map of our own on tensor cores.
#include <cstdio>

#include <attune/cuda.hpp>

using namespace attune;

struct squash {  // s / sqrt(1 + s^2)
  static constexpr auto role = policy_role::score_map;
  template <class T>
  struct bound {
    ATTUNE_HD T map(T const& s) const { return s / math::sqrt(T(T(1) + s * s)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const&) const {
    return {};
  }
};

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::puts("no CUDA device: skipped"), 0;
  shape const s{1, 2, 1000, 64};
  std::size_t const bytes = std::size_t(s.size()) * sizeof(bfloat16);
  bfloat16 *x = nullptr, *y = nullptr, first;
  cudaMalloc(&x, bytes), cudaMalloc(&y, bytes);
  cudaMemset(x, 0x3f, bytes);  // every number 0x3f3f: 0.746
  auto const op = attention(kernel::dot_product{} | squash{}, mask::causal{});
  tensor<bfloat16> const in(x, s), out(y, s);
  forward(cuda<bfloat16, exec_cuda::widths<64>>{}, op, {.q = in, .k = in, .v = in}, {.out = out});
  cudaMemcpy(&first, y, sizeof first, cudaMemcpyDeviceToHost);
  std::printf("out %.3f\n", double(float(first)));
}
