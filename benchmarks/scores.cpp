// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Symbols of operators with other scores: position terms, caps, length scales, gates.
#include "symbols.hpp"

using namespace bench;

extern "C" {

ATTUNE_BENCH_OPERATOR(alibi, ATTUNE_BENCH_PARAMETERS(float const* slope), no_more{},
                      dot(scale) + kernel::alibi{of_heads(slope, H)})
ATTUNE_BENCH_OPERATOR(softcap, ATTUNE_BENCH_PARAMETERS(float cap), no_more{}, dot(scale) | kernel::softcap{double(cap)})
ATTUNE_BENCH_OPERATOR(ssmax, ATTUNE_BENCH_PARAMETERS(float const* factor), no_more{}, dot(scale),
                      length_scale::ssmax{of_heads(factor, H), 0})
/// sort_q (B, H, Lq), sort_k (B, Hk, Lk), tau per head.
ATTUNE_BENCH_OPERATOR(hybrid, ATTUNE_BENCH_PARAMETERS(float const* sort_q, float const* sort_k, float const* tau),
                      (sort_keys<float>{{sort_q, {B, H, Lq, 1}}, {sort_k, {B, Hk, Lk, 1}}}),
                      dot(scale) + kernel::scalar_sort{of_heads(tau, H)})
/// Forgetting attention (FoX): sums of log f, sort_q (B, H, Lq) and sort_k (B, Hk, Lk).
ATTUNE_BENCH_OPERATOR(fox, ATTUNE_BENCH_PARAMETERS(float const* sort_q, float const* sort_k),
                      (sort_keys<float>{{sort_q, {B, H, Lq, 1}}, {sort_k, {B, Hk, Lk, 1}}}),
                      dot(scale) + kernel::scalar_difference{})
/// Rotary positions, base 10000.
ATTUNE_BENCH_OPERATOR(rope, ATTUNE_BENCH_PARAMETERS(), no_more{},
                      (kernel::rotary{rope_angles(D, Lk), rotary_layout::half, rotary_keys::plain, scale}))
/// Principled Attention: gate_q (B, H, Lq, D) unscaled, gate_k (B, Hk, Lk, D), v0 (H, D); alpha, beta, gamma per head
/// and query.
ATTUNE_BENCH_OPERATOR(principled,
                      ATTUNE_BENCH_PARAMETERS(float const* gate_q, float const* gate_k, float const* v0,
                                              float const* alpha, float const* beta, float const* gamma),
                      (gates_and_ground<float>{{gate_q, {B, H, Lq, D}}, {gate_k, {B, Hk, Lk, D}}, {v0, {1, H, 1, D}}}),
                      dot(scale), length_scale::margin{of_queries(alpha, B, H, Lq), of_queries(gamma, B, H, Lq)},
                      gate::softplus{of_queries(beta, B, H, Lq)}, normalizer::grounded{of_queries(gamma, B, H, Lq)})

}  // extern "C"
