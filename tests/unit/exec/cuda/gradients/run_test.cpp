// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"

namespace attune::test {
namespace {

/// Blocks in the opposite order.
struct reversed_blocks : testing::host_blocks {
  template <class Tile, class Call, class Place>
  void each(Call const& call, index_t count, int each, Place const& place, int warps) {
    testing::host_blocks::each<Tile>(
        call, count, each, [&](index_t n, int s) { return place(count - 1 - n, s); }, warps);
  }
};

TEST_CASE("gradients of tiles: the same bits in any order of the blocks, and in any batch") {
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, normalizer::sink{0.5}, mask::causal{});
  using problem = gradient_problem<std::remove_const_t<decltype(op)>, bfloat16>;
  using widths = exec_cuda::widths<64>;
  gradient_extents n{.batch = 2, .heads = 4, .key_heads = 2, .queries = 140, .keys = 150, .offset = 15};
  n.pairs = {1, 1, 0, 0};
  problem p(op, n);
  auto const rows = p.saved<widths>();
  auto const here = p.on_host<widths>(), there = p.gradients([&](auto const& in, auto const& d, auto const& to) {
    testing::emulated_gradient_runner<reversed_blocks> runner;
    testing::detail::run_emulated_vjp<widths>(runner, op, in, std::span<float const>(rows), d, to);
  });
  CHECK(same_bits(here, there));

  n.batch = 1;
  problem alone(op, n);
  p.asked.by_lse = p.asked.by_ground = alone.asked.by_lse = alone.asked.by_ground = false;
  auto const first = [](auto const& x, auto& to) { std::copy_n(x.begin(), to.size(), to.begin()); };
  for (field f : {field::q, field::k, field::v, field::bias}) first(p.numbers(f), alone.numbers(f));
  first(p.by_out(), alone.by_out());
  auto const both = p.on_host<widths>(), one = alone.on_host<widths>();
  for (field f : {field::q, field::k, field::v}) {
    auto const &x = both[std::size_t(f)], &y = one[std::size_t(f)];
    INFO(name_of(f));
    CHECK(std::equal(y.begin(), y.end(), x.begin(), [](bfloat16 a, bfloat16 b) { return a.bits == b.bits; }));
  }
}
TEST_CASE("gradients of tiles: dropout, with the numbers of the forward pass") {
  auto const op = attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = 5}, mask::causal{});
  CHECK(gradients_of<bfloat16, 64>(op, {.batch = 2, .heads = 4, .value_heads = 2, .queries = 40, .offset = 80}) == "");
}
TEST_CASE("gradients of tiles: gates of values and of outputs, a ground value") {
  gradient_extents const n{.heads = 4, .key_heads = 2, .value_heads = 2, .offset = 60};
  CHECK(gradients_of<bfloat16, 64>(value_gated_attention(mask::causal{}), n, 2) == "");
  CHECK(gradients_of<bfloat16, 64>(gated_attention(mask::causal{}), n, 2) == "");
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::dot_product{}, normalizer::valued_sink{0.5}, mask::causal{}), n) ==
        "");
}
TEST_CASE("gradients of tiles: a bias of pairs, own or shared along any axis") {
  auto const op = biased_attention(mask::causal{});
  for (shape const& pairs : {shape{0, 0, 0, 0}, shape{1, 0, 0, 0}, shape{0, 1, 0, 0}, shape{1, 1, 0, 0},
                             shape{0, 0, 1, 0}, shape{1, 1, 1, 0}}) {
    INFO(to_string(pairs));
    CHECK(gradients_of<bfloat16, 64>(
              op, {.batch = 2, .heads = 4, .key_heads = 2, .queries = 70, .keys = 90, .offset = 15, .pairs = pairs}) ==
          "");
  }
}
TEST_CASE("gradients of tiles: given scores, without a product") {
  CHECK(gradients_of<bfloat16, 64>(attention(kernel::given_scores{}, mask::causal{}),
                                   {.heads = 2, .queries = 70, .keys = 90, .offset = 30}) == "");
}
TEST_CASE("gradients of tiles: the table of a product's left factors") {
  std::vector<double> weights;
  for (int n = 0; n < 64; ++n) weights.push_back(0.1 + 0.01 * n);
  CHECK(gradients_of<bfloat16, 64>(bilinear_attention(tensor<double const>(weights, {1, 1, 1, 64}), mask::causal{}),
                                   {.batch = 2, .heads = 4, .key_heads = 2, .offset = 60}, 4, true) == "");
}

TEST_CASE("gradients of tiles: distances, with a metric of all heads or of each") {
  gradient_extents const n{.batch = 2, .heads = 4, .key_heads = 2, .offset = 60};
  CHECK(gradients_of<bfloat16, 64>(rbf_attention(20, mask::causal{}), n) == "");
  std::vector<double> weights;
  for (int k = 0; k < 4 * 64; ++k) weights.push_back(0.1 + 0.002 * k);
  CHECK(gradients_of<bfloat16, 64>(
            elliptical_attention(tensor<double const>(weights.data(), {1, 1, 1, 64}), mask::causal{}), n, 4, true) ==
        "");
  CHECK(gradients_of<bfloat16, 64>(
            elliptical_attention(tensor<double const>(weights.data(), {1, 4, 1, 64}), mask::causal{}), n, 4, true) ==
        "");
}
TEST_CASE("gradients of tiles: tables of distances, of all heads or of each, with offsets of batch elements") {
  gradient_extents const n{.batch = 2, .heads = 4, .key_heads = 2, .queries = 40, .keys = 90, .offset = 50};
  std::vector<double> values;
  for (int k = 0; k < 4 * 33; ++k) values.push_back(0.01 * (k % 17));
  for (index_t heads : {1, 4})
    CHECK(gradients_of<bfloat16, 64>(
              relative_bias_attention(tensor<double const>(values.data(), {1, heads, 33, 1}), mask::causal{}), n, 1,
              true) == "");
  CHECK(gradients_of<bfloat16, 64>(t5_attention({tensor<double const>(values.data(), {1, 4, 32, 1})}, mask::causal{}),
                                   n, 1, true) == "");
}

}  // namespace
}  // namespace attune::test
