// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Symbols of operators that turn a dot product into weights in another way than softmax does; and softmax.
#include "symbols.hpp"

using namespace bench;

extern "C" {

ATTUNE_BENCH_FORWARD(softmax_f64, double, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
ATTUNE_BENCH_FORWARD(softmax_bf16, bfloat16, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
ATTUNE_BENCH_FORWARD(softmax_f16, float16, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
ATTUNE_BENCH_OPERATOR(softmax, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale))
ATTUNE_BENCH_OPERATOR(off_by_one, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::off_by_one{})
ATTUNE_BENCH_OPERATOR(sink, ATTUNE_BENCH_PARAMETERS(float const* logit), no_more{}, dot(scale),
                      normalizer::sink{of_heads(logit, H)})
ATTUNE_BENCH_OPERATOR(affine, ATTUNE_BENCH_PARAMETERS(float const* alpha, float average), no_more{}, dot(scale),
                      normalizer::affine<>{of_queries(alpha, B, H, Lq), double(average)})
ATTUNE_BENCH_OPERATOR(sigmoid, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::sigmoid{})
ATTUNE_BENCH_FORWARD(self_adjusted, float, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale),
                     normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{})

}  // extern "C"
