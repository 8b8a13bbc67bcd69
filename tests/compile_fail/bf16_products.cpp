// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What cpu_bf16_products does not offer.
#include "operators.hpp"

inline tensor<bfloat16> const brains;
inline constexpr cpu_bf16_products<xsimd::default_arch, float, bf16_emulated> emulated{};

// expect-error bf16_products_without_instructions: cpu_bf16_products multiplies by instructions of AVX-512 BF16.*add -mavx512bf16
int main() { decode(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }

// expect-error bf16_products_of_decode: this executor \(Exec\) does not offer this call \(Call\)
int main() {
  decode(cpu_bf16_products<xsimd::default_arch, bfloat16, amx_emulated>{}, plain,
         {.q = brains, .k = brains, .v = brains}, {.out = brains});
}

// expect-error bf16_products_of_candidates: takes no candidate sets
int main() { forward(emulated, sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error bf16_products_of_fold: takes no folds: call it for an operator of the fold
int main() { forward(emulated, fold(softmax_attention(), {1.0, -0.5}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error bf16_products_of_scores: does not read scores, gates and biases given for each pair
int main() { vjp(emulated, scored, {.v = x, .scores = x}, {.out = x}); }

// expect-error bf16_products_of_states: this executor \(Exec\) does not offer this call \(Call\)
int main() { accumulate(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {0, 1}); }

// expect-error bf16_products_of_vjp: writes saved rows and gradients to the caller's memory
int main() { vjp(cpu_bf16_products{}, plain, {.q = brains, .k = brains, .v = brains}, {.out = brains}); }
