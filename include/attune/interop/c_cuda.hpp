// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #define ATTUNE_C_ON_DEVICE
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(cuda, run_cuda<make_mine, attune::bfloat16>)
//
// The executor `cuda` for other languages, as a separate library for one element type: c_abi.h, attune_cuda. For nvcc.
#pragma once

#include <attune/exec/cuda/executor.hpp>
#include <attune/interop/device_call.hpp>

namespace attune::interop {

/// attune_companion::run of forward() on a CUDA device, for calls of E. More: attune_cuda.
template <class Make, class E>
int run_cuda(attune_call const* c, void const* more, attune_text text) {
  auto const& from = *static_cast<attune_cuda const*>(more);
  return run_on_device<Make, E>(c, text, [&](auto const& op, auto const& in, auto const& out) {
    cuda<E> const exec{static_cast<cudaStream_t>(from.stream), from.workspace, std::size_t(from.bytes)};
    if (from.needed)
      *from.needed = std::int64_t(workspace_bytes(exec, op, in, out));
    else
      forward(exec, op, in, out);
  });
}

}  // namespace attune::interop
