// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A call, its gradients and a call on stored bf16, optimized for AVX-512, where the intrinsics of g++ 12 warn if nothing
// exempts them. Compiled, not run.
#include <attune/attune.hpp>

using namespace attune;
using causal_softmax = decltype(attention(kernel::dot_product{}, mask::causal{}));

void run(inputs<causal_softmax, tensor<float const>> const& in, tensor<float> const& out) {
  forward(cpu<float>{1}, causal_softmax{}, in, {.out = out});
}
double differentiate(inputs<causal_softmax, tensor<float const>> const& in, tensor<float const> const& by_out) {
  return vjp(cpu<float>{1}, causal_softmax{}, in, {.out = by_out}).of(field::q).values[0];
}
void run(inputs<causal_softmax, tensor<bfloat16 const>> const& in, tensor<bfloat16> const& out) {
  decode(cpu<bfloat16>{1}, causal_softmax{}, in, {.out = out});
}
