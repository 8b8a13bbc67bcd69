// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   #define ATTUNE_C_ON_DEVICE
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(warps, run_warps<make_mine, attune::bfloat16>)
//
// interop/c_cuda.hpp on emulated warps, for tests without a GPU: the same call with tensors of the host.
#pragma once

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/interop/device_call.hpp>

namespace attune::interop {

/// attune_companion::run of forward() of `cuda` on emulated warps. More: attune_cuda, whose stream and workspace do not
/// count: it needs 0 bytes.
template <class Make, class E>
int run_warps(attune_call const* c, void const* more, attune_text text) {
  auto const& from = *static_cast<attune_cuda const*>(more);
  return run_on_device<Make, E>(c, text, [&](auto const& op, auto const& in, auto const& out) {
    if (from.needed)
      *from.needed = 0;
    else
      testing::forward_on_host_warps(op, in, out);
  });
}

}  // namespace attune::interop
