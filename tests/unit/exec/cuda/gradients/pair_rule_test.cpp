// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"

namespace attune::test {
namespace {

TEST_CASE("gradients of tiles: softcap, alibi") {
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::dot_product{} | kernel::softcap{5}, mask::causal{}),
                                   {.heads = 4, .offset = 80}) == "");
  CHECK(gradients_of<bfloat16, 128>(attention(kernel::dot_product{} + kernel::alibi{0.1}, mask::causal{}),
                                    {.heads = 2, .width = 128, .value_width = 128, .offset = 80}) == "");
}
TEST_CASE("gradients of tiles: a sink, a ground, a uniform share, masses without a reference") {
  gradient_extents const n{.heads = 2, .offset = 40};
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::dot_product{}, normalizer::sink{0.5}, mask::causal{}), n) == "");
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::dot_product{}, normalizer::grounded{0.2}, mask::causal{}), n) ==
        "");
  CHECK(gradients_of<bfloat16, 64>(affine_scaled_attention(0.8, 0.9, mask::causal{}), n) == "");
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::dot_product{}, normalizer::sigmoid{}, mask::causal{}), n) == "");
}
TEST_CASE("gradients of tiles: Principled Attention, by queries, keys, values and both gate vectors") {
  auto const op = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4, .queries = 60, .offset = -2}) == "");
  CHECK(gradients_of<bfloat16, 128>(op, {.heads = 2, .width = 128, .value_width = 128, .offset = 80}) == "");
}

TEST_CASE("gradients of tiles: a bias of keys, shared by heads or not") {
  auto const op = attention(kernel::dot_product{} + kernel::key_bias{}, mask::causal{});
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4, .key_heads = 2, .queries = 40, .offset = 80}) == "");
}

}  // namespace
}  // namespace attune::test
