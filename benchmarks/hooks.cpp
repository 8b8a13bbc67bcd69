// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators that use a hook: a weight gate, a fold, an ordered sum. symbols.hpp says what the arguments are.
#include "support/stick_breaking.hpp"
#include "symbols.hpp"

using namespace bench;

namespace {

/// H heads of queries and keys are the terms of H / 2 heads of values.
auto make_differential(float scale, float const* minus_lambda, int H) {
  return [=](auto... masks) { return fold(attention(dot(scale), masks...), {1.0, of_heads(minus_lambda, H / 2)}); };
}

}  // namespace

extern "C" {

ATTUNE_BENCH_OPERATOR(dropout, ATTUNE_BENCH_PARAMETERS(float rate, int seed), no_more{}, dot(scale),
                      (gate::dropout{.rate = double(rate), .seed = std::uint64_t(seed)}))
ATTUNE_BENCH_OPERATOR(stick_breaking, ATTUNE_BENCH_PARAMETERS(), no_more{}, test::stick_breaking{scale},
                      normalizer::exponential{})

void attune_differential(ATTUNE_BENCH_CALL(float), float const* minus_lambda) {
  bench::run(of_terms(2, ATTUNE_BENCH_DENSE), no_more{}, make_differential(scale, minus_lambda, H));
}
void attune_train_differential(ATTUNE_BENCH_CALL(float), float const* minus_lambda, float const* by_out) {
  bench::train(cpu<float>(threads), of_terms(2, ATTUNE_BENCH_DENSE), by_out, no_more{},
               make_differential(scale, minus_lambda, H));
}

}  // extern "C"
