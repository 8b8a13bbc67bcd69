// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled by nvcc where the consumer asked for the component cuda.
#include <attune/cuda.hpp>

void attend(cudaStream_t stream, attune::tensor<attune::bfloat16 const> const& x,
            attune::tensor<attune::bfloat16> const& out) {
  using namespace attune;
  forward(cuda<bfloat16, exec_cuda::widths<64>>{stream}, softmax_attention(mask::causal{}), {.q = x, .k = x, .v = x},
          {.out = out});
}
