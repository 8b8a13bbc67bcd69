// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_COMPANION(cuda_vjp, run_cuda_vjp<make_mine, attune::bfloat16, 128>)
//
// Gradients of the executor `cuda` for other languages: c_abi.h, attune_cuda. For nvcc.
#pragma once

#include <attune/exec/cuda/gradients/executor.hpp>
#include <attune/interop/c_cuda.hpp>

namespace attune::interop {

/// attune_companion::run of vjp() on a CUDA device, for calls of E whose features fit tiles of Width. More:
/// attune_cuda.
template <class Make, class E, int Width>
int run_cuda_vjp(attune_call const* c, void const* more, attune_text text) {
  return vjp_on_device<Make, cuda_of_width<E, Width>>(c, more, text);
}

}  // namespace attune::interop
