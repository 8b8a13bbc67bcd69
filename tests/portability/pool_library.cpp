// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A library that calls attune and hides its symbols: compiled twice, loaded by pools_test.cpp.
#include <vector>

#include <attune/attune.hpp>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED float attend() {
  using namespace attune;
  shape const s{1, 8, 64, 32};
  std::vector<float> q(8 * 64 * 32, 0.5f), out(q.size());
  forward(cpu{4}, attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}),
          {.q = {q.data(), s}, .k = {q.data(), s}, .v = {q.data(), s}}, {.out = {out.data(), s}});
  return out[77];
}
// [snippet: pools]
EXPORTED attune::pool_functions const* lend_pool() { return &attune::own_pool(); }
EXPORTED void borrow_pool(attune::pool_functions const* pool) { attune::use_pool(pool); }
// [/snippet]
