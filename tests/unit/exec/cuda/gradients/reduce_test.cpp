// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"

namespace attune::test {
namespace {

template <class Op>
std::string wrong_parameters(Op const& op, gradient_extents const& n = {.heads = 4, .key_heads = 2, .offset = 60}) {
  return gradients_of<float, 64>(op, n);  // the bound of 16 bits is wider than most of these sums
}

TEST_CASE("gradients of tiles by parameters: slopes of affine logits, for each head and for all") {
  std::vector<double> const scales{-0.2, 0.1, 0.3, 0.05};
  CHECK(wrong_parameters(
            attention(kernel::dot_product{.scale = tensor<double const>(scales, {1, 4, 1, 1})}, mask::causal{})) == "");
  CHECK(wrong_parameters(attention(kernel::dot_product{.scale = 0.2}, mask::causal{}),
                         {.batch = 3, .heads = 2, .queries = 300, .keys = 70, .offset = 0}) == "");
}
TEST_CASE("gradients of tiles by parameters: a sink's logit, the level of a ground, a share") {
  CHECK(wrong_parameters(sink_attention(0.5, mask::causal{})) == "");
  CHECK(wrong_parameters(attention(kernel::dot_product{}, normalizer::grounded{0.2}, mask::causal{})) == "");
  CHECK(wrong_parameters(affine_scaled_attention(0.8, 0.9, mask::causal{})) == "");
  CHECK(wrong_parameters(sigmoid_attention(parameter(-1.0), mask::causal{})) == "");
}
TEST_CASE("gradients of tiles by parameters: Principled Attention, in both types") {
  auto const op = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  CHECK(wrong_parameters(op) == "");
  CHECK(gradients_of<float16, 64>(op, {.batch = 2, .heads = 2, .queries = 40, .offset = 70}) == "");
}
TEST_CASE("gradients of tiles by parameters: softcap, ALiBi, a length scale") {
  CHECK(wrong_parameters(softcap_attention(4.0, mask::causal{})) == "");
  CHECK(wrong_parameters(alibi_attention(0.05, mask::causal{})) == "");
  CHECK(wrong_parameters(ssmax_attention({}, mask::causal{})) == "");
}

}  // namespace
}  // namespace attune::test
