// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What cpu_bf16_products does not offer.
#include "operators.hpp"

inline tensor<bfloat16> const brains;
inline constexpr cpu_bf16_products<xsimd::default_arch, float, bf16_emulated> emulated{};

// expect-error bf16_products_without_instructions: cpu_bf16_products multiplies by instructions of AVX-512 BF16.*add -mavx512bf16
int main() { decode(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }

// expect-error bf16_products_of_decode: decode\(\) by products of bf16 reads bf16 tensors and multiplies by bf16_instructions
int main() {
  decode(cpu_bf16_products<xsimd::default_arch, bfloat16, amx_emulated>{}, plain,
         {.q = brains, .k = brains, .v = brains}, {.out = brains});
}

// expect-error bf16_products_of_candidates: cpu_bf16_products has no products of bf16 for candidate sets
int main() { forward(emulated, sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error bf16_products_of_fold: cpu_bf16_products runs one operator: call it for each operator of a mixture or fold
int main() { forward(emulated, fold(softmax_attention(), {1.0, -0.5}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error bf16_products_of_scores: cpu_bf16_products does not read scores, gates and biases given for each pair: use cpu<float>
int main() { vjp(emulated, scored, {.v = x, .scores = x}, {.out = x}); }

// expect-error bf16_products_of_states: cpu_bf16_products offers forward\(\), decode\(\), forward_and_save\(\) and vjp\(\)
int main() { accumulate(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {0, 1}); }

// expect-error bf16_products_of_vjp: vjp\(\) of bf16 tensors writes to the caller's memory
int main() { vjp(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }
