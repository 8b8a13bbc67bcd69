// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #define ATTUNE_C_ON_DEVICE
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(warps, run_warps<make_mine, attune::bfloat16, 64>)
//   ATTUNE_C_COMPANION(warps_vjp, run_warps_vjp<make_mine, attune::bfloat16, 64>)
//
// interop/c_cuda.hpp on emulated warps, for tests without a GPU: the same calls with tensors of the host.
#pragma once

#include <attune/exec/cuda/host/executor.hpp>
#include <attune/interop/device/call.hpp>

namespace attune::interop {

/// run_cuda() on emulated warps. The stream does not count.
template <class Make, class E, int Width>
int run_warps(attune_call const* c, void const* more, attune_text text) {
  return run_on_device<Make, testing::emulated_cuda<E, exec_cuda::widths<Width>>>(c, more, text);
}
/// run_cuda_vjp() on emulated warps. The stream does not count.
template <class Make, class E, int Width>
int run_warps_vjp(attune_call const* c, void const* more, attune_text text) {
  return vjp_on_device<Make, testing::emulated_cuda<E, exec_cuda::widths<Width>>>(c, more, text);
}

}  // namespace attune::interop
