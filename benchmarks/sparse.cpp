// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Symbols of normalizers with a candidate set.
#include "symbols.hpp"

using namespace bench;

extern "C" {

ATTUNE_BENCH_OPERATOR(entmax15, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::entmax15{})
ATTUNE_BENCH_OPERATOR(sparsemax, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::sparsemax{})
ATTUNE_BENCH_FORWARD(entmax13, float, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::entmax{1.3})
ATTUNE_BENCH_FORWARD(top_k, float, ATTUNE_BENCH_PARAMETERS(), no_more{}, dot(scale), normalizer::top_k{16})

}  // extern "C"
