// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <limits>
#include <type_traits>

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
TEST_CASE("gradients of tiles: logits of -inf have gradients of exactly 0, and so have rows of them alone") {
  auto const op = attention(kernel::dot_product{} + kernel::key_bias{}, mask::causal{});
  gradient_problem<std::remove_const_t<decltype(op)>, bfloat16> p(op, {.queries = 70, .keys = 90, .offset = 0});
  for (std::size_t j = 0; j < 90; ++j)
    if (j < 30 || j % 3 == 0) p.numbers(field::key_bias)[j] = bfloat16(-std::numeric_limits<float>::infinity());
  auto const got = p.on_host<exec_cuda::widths<64>>();
  CHECK(p.beyond_bound(got) == "");
  int moved = 0;
  auto const zeros = [&](field f, index_t row) {
    index_t const width = p.extents(f).feature;
    for (index_t d = 0; d < width; ++d) moved += float(got[std::size_t(f)][std::size_t(row * width + d)]) == 0 ? 0 : 1;
  };
  for (index_t j = 0; j < 90; ++j)
    if (j < 30 || j % 3 == 0) zeros(field::key_bias, j), zeros(field::k, j), zeros(field::v, j);
  for (index_t i = 0; i < 30; ++i) zeros(field::q, i);
  CHECK(moved == 0);
}
TEST_CASE("gradients of tiles: levels of the ground of -inf and +inf") {
  gradient_extents const n{.heads = 2, .queries = 40, .keys = 90};
  auto const at = [](float level) {
    return attention(kernel::dot_product{}, normalizer::grounded{level}, mask::causal{});
  };
  float const inf = std::numeric_limits<float>::infinity();
  CHECK(gradients_of<bfloat16, 64>(at(-inf), n) == "");
  auto const op = at(inf);
  gradient_problem<std::remove_const_t<decltype(op)>, bfloat16> p(op, n);
  auto const got = p.on_host<exec_cuda::widths<64>>();  // the ground has all the weight
  for (field f : {field::q, field::k, field::v}) {
    auto const& x = got[std::size_t(f)];
    CHECK(std::all_of(x.begin(), x.end(), [](bfloat16 y) { return float(y) == 0; }));
  }
}

}  // namespace
}  // namespace attune::test
