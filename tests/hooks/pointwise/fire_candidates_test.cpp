// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients by tables that `bind` reads, where rows have a candidate set, and where the extreme logits move.
#include <attune/attune.hpp>

#include "../../support/every_call.hpp"
#include "../../support/fire.hpp"

namespace attune::test {
namespace {

template <class Normalizer>
void check(Normalizer n) {
  random_tables t;
  auto const op = attention(kernel::dot_product{} | bent{t({1, 2, 1, 9}, 0.75, 0.25)}, n, mask::causal{});
  auto const r = testing::check_gradients(op, {.heads = 2, .queries = 4, .keys = 8, .width = 3}, 5);
  INFO(printed(r));
  CHECK(r.passed());
  CHECK(r.line("table kernel.map.w").magnitude > 1e-3);
}

TEST_CASE("tables in pointwise code: a candidate set") { check(normalizer::sparsemax{}); }
TEST_CASE("tables in pointwise code: extreme logits that move") {
  check(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{});
}

}  // namespace
}  // namespace attune::test
