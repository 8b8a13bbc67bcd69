// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The cases on a device, then times. Prints a line per case; the exit status is the number of failures.
#include <cstdio>

#include <cuda_runtime_api.h>

namespace attune::cuda_check {
int failed();
void softmax_cases();
void softmax_times();
template <int Group>
void preset_group();
void preset_times();
void tile_times();
}  // namespace attune::cuda_check

int main() {
  cudaDeviceProp of{};
  if (cudaGetDeviceProperties(&of, 0) != cudaSuccess) return std::printf("no CUDA device\n"), 0;
  std::printf("%s, sm_%d%d\n", of.name, of.major, of.minor);
  using namespace attune::cuda_check;
  softmax_cases();
#if !defined(ONLY_SOFTMAX)
  preset_group<0>(), preset_group<1>(), preset_group<2>(), preset_group<3>(), preset_group<4>(), preset_group<5>();
  preset_group<6>(), preset_group<7>(), preset_group<8>(), preset_group<9>(), preset_group<10>(), preset_group<11>();
  preset_group<12>(), preset_group<13>(), preset_group<14>();
#endif
  softmax_times();
#if !defined(ONLY_SOFTMAX)
  preset_times();
  tile_times();
#endif
  std::printf("%d failures\n", failed());
  return failed();
}
