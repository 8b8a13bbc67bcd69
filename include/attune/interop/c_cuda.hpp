// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #define ATTUNE_C_ON_DEVICE
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(cuda, run_cuda<make_mine, attune::bfloat16, 128>)
//
// The executor `cuda` for other languages, as separate libraries for one element type and one width of tiles: c_abi.h,
// attune_cuda. For nvcc.
#pragma once

#include <attune/exec/cuda/executor.hpp>
#include <attune/interop/device/call.hpp>

namespace attune::interop {

/// The executor with tiles of one width, which fit the devices that nvcc compiles for.
template <class E, int Width>
using cuda_of_width =
    cuda<E, exec_cuda::widths_within<exec_cuda::for_small_memory ? exec_cuda::small_memory : exec_cuda::large_memory,
                                     Width>>;

/// attune_companion::run of forward() and forward_and_save() on a CUDA device, for calls of E whose features fit tiles
/// of Width. More: attune_cuda.
template <class Make, class E, int Width>
int run_cuda(attune_call const* c, void const* more, attune_text text) {
  return run_on_device<Make, cuda_of_width<E, Width>>(c, more, text);
}

}  // namespace attune::interop
