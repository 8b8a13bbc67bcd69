// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The kernels of gradients of the archetypes. Compiled, never run: -Xptxas -v prints registers and spills.
#include <attune/exec/cuda/gradients/kernels.cuh>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

namespace attune::exec_cuda {

template <class E, int Width, class Op>
void kernels(Op const&, void const** to) {
  using configs = gradient_configs<Op, E, Width>;
  to[0] = reinterpret_cast<void const*>(query_gradient_kernel<Op, E, typename configs::queries>);
  to[1] = reinterpret_cast<void const*>(key_gradient_kernel<Op, E, typename configs::keys>);
}
template <class E, int Width>
void archetypes(void const** to) {
  kernels<E, Width>(softmax_attention(mask::causal{}), to);
  kernels<E, Width>(attention(kernel::dot_product{} | kernel::softcap{30}, mask::causal{}), to);
  kernels<E, Width>(principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), to);
}
void all(void const** to) {
  archetypes<bfloat16, 64>(to);
  archetypes<bfloat16, 128>(to);
}

}  // namespace attune::exec_cuda
