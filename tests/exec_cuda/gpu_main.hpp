// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   PROGRAM [few]      "few" leaves out the long cases: for compute-sanitizer
//
// main() of the programs that scripts/gpu runs on a device, each a process of its own: what one of them breaks, the next
// one does not see. A line per case. The exit status is 77 without a device, 1 if a case failed or none ran.
#pragma once

#include "device.hpp"

namespace attune::cuda_check {
/// The cases of this program.
void run();
}  // namespace attune::cuda_check

int main(int count, char**) {
  using namespace attune::cuda_check;
  cudaDeviceProp of{};
  if (cudaGetDeviceProperties(&of, 0) != cudaSuccess) return std::printf("no CUDA device\n"), 77;
  std::printf("%s, sm_%d%d\n", of.name, of.major, of.minor);
  few = count > 1;
  run();
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures != 0 || cases == 0;
}
