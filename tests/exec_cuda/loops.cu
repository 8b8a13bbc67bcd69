// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The kernels whose machine code scripts/mma_loops counts. Compiled, never run.
#include <attune/cuda.hpp>

namespace attune {

template <int Width, class E, class Op>
void call(Op const& op, tensor<E const> const& x, tensor<E> const& out) {
  auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() { return x; });
  forward(cuda<E, exec_cuda::widths<Width>>{}, op, in, outputs<Op, E>{.out = out});
}
void calls(tensor<bfloat16 const> const& x, tensor<bfloat16> const& out) {
  call<64>(softmax_attention(mask::causal{}), x, out);
  call<128>(softmax_attention(mask::causal{}), x, out);
  call<128>(principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), x, out);
}
void calls(tensor<float const> const& x, tensor<float> const& out) {
  call<64>(softmax_attention(mask::causal{}), x, out);
  call<128>(softmax_attention(mask::causal{}), x, out);
  call<128>(principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), x, out);
}

}  // namespace attune
