// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The whole backward pass of archetypes, as a program calls it, for tiles of ATTUNE_WIDTH. Compiled, never run.
// scripts/mma_loops counts the machine code of its kernels.
#include <attune/cuda_gradients.hpp>

#if !defined(ATTUNE_WIDTH)
#define ATTUNE_WIDTH 64, 128
#endif

namespace attune {

/// Tiles that fit the devices that nvcc compiles for.
using tile_widths =
    exec_cuda::widths_within<exec_cuda::for_small_memory ? exec_cuda::small_memory : exec_cuda::large_memory,
                             ATTUNE_WIDTH>;

template <class E, class Op>
void gradients(Op const& op, tensor<E const> const& x, tensor<E> const& by, std::span<float const> saved) {
  auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() { return x; });
  cotangents<Op, tensor<E const>> const d{.out = x};
  gradient_outputs<Op, E> to;
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && exec_cuda::has_gradient<Op>(F)) to.of(F) = by;
  });
  cuda<E, tile_widths> exec;
  exec.bytes = workspace_bytes(exec, op, in, saved, d, to);
  prepare(exec, op, in, saved, d, to);
  vjp(exec, op, in, saved, d, to);
}
void archetypes(tensor<bfloat16 const> const& x, tensor<bfloat16> const& by, std::span<float const> saved) {
  gradients(softmax_attention(mask::causal{}), x, by, saved);
  gradients(softcap_attention(30, mask::causal{}), x, by, saved);
  gradients(principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), x, by, saved);
}
#if defined(ATTUNE_MORE)
void archetypes(tensor<float16 const> const& x, tensor<float16> const& by, std::span<float const> saved) {
  gradients(softmax_attention(mask::causal{}), x, by, saved);
}
void archetypes(tensor<float const> const& x, tensor<float> const& by, std::span<float const> saved) {
  gradients(softmax_attention(mask::causal{}), x, by, saved);
  gradients(principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), x, by, saved);
}
/// The calls that run the forward pass themselves, and a mask that is a list of tiles.
void both_passes(tensor<bfloat16 const> const& x, tensor<bfloat16> const& by) {
  auto const op = softmax_attention(mask::sink_window{.sinks = 4, .width = 30});
  using Op = std::remove_const_t<decltype(op)>;
  inputs<Op, tensor<bfloat16 const>> const in{.q = x, .k = x, .v = x};
  cotangents<Op, tensor<bfloat16 const>> const d{.out = x};
  gradient_outputs<Op, bfloat16> to;
  to.of(field::q) = by;
  cuda<bfloat16, tile_widths> exec;
  exec.bytes = workspace_bytes(exec, op, in, d, to);
  prepare(exec, op, in, d, to);
  vjp(exec, op, in, d, to);
}
#endif

}  // namespace attune
