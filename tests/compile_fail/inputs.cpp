// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Inputs and outputs that an operator lacks or does not take.
#include "operators.hpp"

inline constexpr traits undivided_mass{.divided_by = divisor::one, .reference = mass_reference::none};
inline constexpr auto undivided = attention(kernel::dot_product{}, normalizer_of<sigmoid_of_logit, undivided_mass>{});

// expect-error missing_q: input \.q \(batch, head, query, D\) is missing
int main() { forward(cpu{}, plain, {.k = x, .v = x}, {.out = y}); }

// expect-error missing_v: input \.v \(batch, value head, key, Dv\) is missing
int main() { forward(cpu{}, plain, {.q = x, .k = x}, {.out = y}); }

// expect-error missing_v0: input \.v0 .* is missing: the normalizer of this operator has a ground value
int main() { forward(cpu{}, with_ground, {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error missing_gate_k: input \.gate_k \(batch, key head, key, Dg\) is missing: this operator has a score gate
int main() { forward(cpu{}, gated, {.q = x, .k = x, .v = x, .gate_q = x}, {.out = y}); }

// expect-error missing_scores: input \.scores \(1 or batch, 1 or head, 1 or query, key\) is missing
int main() { forward(cpu{}, scored, {.v = x}, {.out = y}); }

// expect-error missing_bias: input \.bias \(1 or batch, 1 or head, 1 or query, key\) is missing: the kernel of this operator adds a
int main() { call(biased_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error missing_key_bias: input \.key_bias \(batch, key head, key, 1\) is missing
int main() { call(attention(kernel::dot_product{} + kernel::key_bias{}), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error missing_value_gate: input \.value_gate \(1 or batch, 1 or value head, key, Dv\) is missing: this operator has a value gate
int main() { call(value_gated_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error missing_output_gate: input \.output_gate \(1 or batch, 1 or head, 1 or query, Dv or 1\) is missing: this operator has an
int main() { call(gated_attention(), {.q = x, .k = x, .v = x}, {.out = y}); }

// expect-error missing_place: input \.place \(batch, key head, key, axes\) is missing: the kernel of this operator has a spatial
int main() { call(smca_attention(1), {.q = x, .k = x, .v = x, .center = x, .spread = x}, {.out = y}); }

// expect-error missing_position_k: input \.position_k \(batch, key head, key, Dp\) is missing: the kernel of this operator compares
int main() { call(tupe_attention(), {.q = x, .k = x, .v = x, .position_q = x}, {.out = y}); }

// expect-error missing_sort_q: input \.sort_q \(batch, head, query, 1\) is missing: the kernel of this operator compares scalars
int main() { call(scalar_sort_attention(1), {.v = x, .sort_k = x}, {.out = y}); }

// expect-error superfluous_q: input \.q is superfluous: the kernel of this operator has no dot product
int main() { forward(cpu{}, scored, {.q = x, .v = x, .scores = x}, {.out = y}); }

// expect-error superfluous_v0: input \.v0 is superfluous: the normalizer of this operator has no ground value
int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x, .v0 = x}, {.out = y}); }

// expect-error superfluous_gate: input \.gate_q is superfluous
int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x, .gate_q = x, .gate_k = x}, {.out = y}); }

// expect-error superfluous_bias: input \.bias is superfluous: the kernel of this operator has no bias that is given
int main() { call(alibi_attention(1), {.q = x, .k = x, .v = x, .bias = x}, {.out = y}); }

// expect-error superfluous_output_gate: input \.output_gate is superfluous: this operator has no output gate
int main() { call(affine_scaled_attention(1, 1), {.q = x, .k = x, .v = x, .output_gate = x}, {.out = y}); }

// expect-error superfluous_sort_k: input \.sort_k is superfluous: the kernel of this operator has no scalar difference
int main() { call(softmax_attention(), {.q = x, .k = x, .v = x, .sort_k = x}, {.out = y}); }

// expect-error missing_out: output \.out \(batch, head, query, Dv\) is missing
int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {}); }

// expect-error lse_without_unit: the LSE of attune is a natural logarithm: say so
int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .lse = y}); }

// expect-error no_lse: output \.lse does not exist
int main() { forward(cpu{}, undivided, {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)}); }

// expect-error no_lse_of_candidates: output \.lse does not exist
int main() { call(sparsemax_attention(), {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)}); }

// expect-error no_ground_weight: output \.ground_weight does not exist
int main() { forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .ground_weight = y}); }

// expect-error no_threshold: output \.threshold does not exist: the normalizer of this operator has no candidate set
int main() { call(softmax_attention(), {.q = x, .k = x, .v = x}, {.out = y, .threshold = y}); }

// expect-no-error calls
int main() {
  forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y});
  forward(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y, .lse = natural_lse(y)});
  forward(cpu{}, gated, {.q = x, .k = x, .v = x, .gate_q = x, .gate_k = x}, {.out = y});
  forward(cpu{}, with_ground, {.q = x, .k = x, .v = x, .v0 = x}, {.out = y, .ground_weight = y});
  forward(cpu{}, scored, {.v = x, .scores = x}, {.out = y});
  forward(cpu{}, undivided, {.q = x, .k = x, .v = x}, {.out = y});
  forward(cpu<double>{}, plain, {.q = wide, .k = wide, .v = wide}, {.out = wide});
  auto const folded = fold(plain, {1.0, -0.5});
  forward(cpu{}, folded, {.q = x, .k = x, .v = x}, {.out = y});
  finish(cpu{}, folded, {.q = x, .k = x, .v = x}, accumulate(cpu{}, folded, {.q = x, .k = x, .v = x}, {0, 1}),
         {.out = y});
  auto const saved = forward_and_save(cpu{}, plain, {.q = x, .k = x, .v = x}, {.out = y});
  statistics(cpu{}, plain, {.q = x, .k = x, .v = x}, saved);
  (void)fold({1.0, -0.5}, plain, gated);
  (void)attention(kernel::dot_product{} + kernel::alibi{1});
  (void)attention(kernel::dot_product{} | kernel::softcap{30});
  (void)attention(kernel::dot_product{}, mask::causal{} & mask::window{3});
}
