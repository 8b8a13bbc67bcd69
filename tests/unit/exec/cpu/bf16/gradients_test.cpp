// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() by products of bf16 pairs: operators of every kind against the bound of gradients, and random problems.
#include "gradients.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <support/cope.hpp>
#include <support/weight_gates.hpp>

#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>

namespace attune::test {
namespace {

auto const two_products = attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{});
auto const adjusted = attention(kernel::dot_product{},
                                normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::runtime{});
auto const gated = attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}, mask::runtime{});

/// `count` random problems of several operators.
void check_drawn_problems(std::string const& name, std::uint64_t first, index_t count) {
  double largest = 0;
  for (index_t n = 0; n < count; ++n) {
    std::uint64_t const seed = first + std::uint64_t(n);
    switch (n % 5) {
      case 0:
        check_drawn(soft, seed, 0, &largest);
        break;
      case 1:
        check_drawn(gated_and_grounded, seed, 0, &largest);
        break;
      case 2:
        check_drawn(two_products, seed, 0, &largest);
        break;
      case 3:
        check_drawn(adjusted, seed, 0, &largest);
        break;
      default:
        check_drawn(gated, seed, 2, &largest);
    }
  }
  MESSAGE(name << ", seed " << first << ": " << count << " problems, largest share of a bound " << largest);
}

/// Operators without a bound of their gradients: all results within 2^-8 of float's, in the root of the mean square.
template <class Op>
void check_like_floats(Op const& op, problem_extents const& e, std::string const& name) {
  attune::testing::detail::normal_numbers random(46);
  problem<Op> p(e, random);
  round_to_bf16(p);
  rounded_cotangents<Op> const d(p);
  auto const in = p.template inputs<tensor<float const>>();
  auto const by = d.template of<tensor<float const>>();
  products_of<float, bf16_emulated> const exec(cpu<float>(1));
  auto const out_by = [&](auto const& with) {
    return written_by<float>(op, p.extents(), [&](auto const& to) { forward(with, op, in, to); }).out;
  };
  auto const compare = [&](std::vector<float> const& x, std::vector<float> const& y, std::string const& what) {
    double error = 0, size = 0;
    for (std::size_t n = 0; n < x.size(); ++n) error += (x[n] - y[n]) * (x[n] - y[n]), size += y[n] * y[n];
    CHECK_MESSAGE(error <= 0x1p-16 * size, name << ", " << what << ": " << std::sqrt(error / size));
    return size > 0;
  };
  CHECK(compare(out_by(exec), out_by(cpu<float>(1)), "out"));
  auto const g = vjp(exec, op, in, by), floats = vjp(cpu<float>(1), op, in, by);
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F)) CHECK(compare(g.of(F).values, floats.of(F).values, name_of(F)));
  });
  for (std::size_t n = 0; n < g.parameters.size(); ++n)
    compare(g.parameters[n].values.values, floats.parameters[n].values.values, g.parameters[n].path);
}

}  // namespace

TEST_SUITE("backward by bf16 products of every kind of row") {
  TEST_CASE("gates, ground, one number per key, two products") {
    problem_extents const e{.batch = 2,
                            .heads = 4,
                            .queries = 9,
                            .keys = 71,
                            .width = 6,
                            .value_width = 10,
                            .gate_width = 5,
                            .key_heads = 2};
    check_backward(gated_and_grounded, e);
    check_backward_of_tiles(gated_and_grounded, e);
    check_backward(two_products, e);
  }

  TEST_CASE("a uniform share, self-adjusted rows, gated values and outputs") {
    problem_extents const e{.heads = 4, .queries = 20, .keys = 35, .width = 8, .position_width = 5, .key_heads = 2};
    check_backward(attention(kernel::dot_product{}, normalizer::affine<>{0.7, 1.2}, mask::runtime{}), e);
    check_backward(adjusted, e);
    check_backward(gated, e, 2);
    check_backward_of_tiles(gated, e, 2);
  }

  TEST_CASE("weights with a factor that a second product makes") {
    problem_extents const e{
        .heads = 4, .queries = 11, .keys = 70, .width = 6, .value_width = 9, .gate_width = 7, .key_heads = 2};
    auto const op = attention(kernel::dot_product{}, weight_sigmoid{}, mask::runtime{});
    check_backward(op, e);
    check_backward_of_tiles(op, e);
  }

  TEST_CASE("sums over later keys with rows that are read at them; turned queries and keys") {
    problem_extents const e{.heads = 2, .queries = 33, .keys = 80, .width = 6, .value_width = 7};
    rotary_angles<float> const angles(rotary_frequencies::plain(int(e.width)), int(e.keys));
    for (sees kind : {sees::all, sees::causal, sees::window}) {
      table_mask const mask(kind, e);
      check_like_floats(attention(cope{}, mask.mask()), e, attune::detail::text("sums, mask ", int(kind)));
      check_like_floats(attention(kernel::rotary{angles}, mask.mask()), e,
                        attune::detail::text("turned, mask ", int(kind)));
    }
  }

  TEST_CASE("random problems, fixed seed") { check_drawn_problems("fixed seed", 1, case_count(0.1)); }
  TEST_CASE("random problems, fresh seed") { check_drawn_problems("fresh seed", fresh_seed(), case_count(0.1)); }
}

}  // namespace attune::test
