// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() by products of bf16 pairs: operators of every kind against the bound of gradients, and random problems.
#include "gradients.hpp"

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <support/cope.hpp>

#include <attune/exec/cpu/gradients.hpp>

namespace attune::test {
namespace {

auto const two_products = attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{});
auto const adjusted = attention(kernel::dot_product{},
                                normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::runtime{});
auto const gated = attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}, mask::runtime{});

/// `count` random problems of several operators.
void check_drawn_problems(char const* name, std::uint64_t first, index_t count) {
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

}  // namespace

TEST_SUITE("backward by bf16 products, every kind of row") {
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
    check_backward(two_products, e);
  }

  TEST_CASE("a uniform share, self-adjusted rows, gated values and outputs") {
    problem_extents const e{.heads = 4, .queries = 20, .keys = 35, .width = 8, .position_width = 5, .key_heads = 2};
    check_backward(attention(kernel::dot_product{}, normalizer::affine<>{0.7, 1.2}, mask::runtime{}), e);
    check_backward(adjusted, e);
    check_backward(gated, e, 2);
  }

  TEST_CASE("sums over later keys, and rows that are read at them") {
    attune::testing::detail::normal_numbers random(46);
    problem_extents const e{.heads = 2, .queries = 33, .keys = 80, .width = 6, .value_width = 7};
    for (sees kind : {sees::all, sees::causal, sees::window}) {
      table_mask const mask(kind, e);
      auto const op = attention(cope{}, mask.mask());
      problem<std::remove_const_t<decltype(op)>> p(e, random);
      round_to_bf16(p);
      rounded_cotangents<std::remove_const_t<decltype(op)>> const d(p);
      auto const in = p.template inputs<tensor<float const>>();
      products_of<float, bf16_emulated> const exec(cpu<float>(1));
      auto const out_by = [&](auto const& with) {
        return written_by<float>(op, p.extents(), [&](auto const& to) { forward(with, op, in, to); }).out;
      };
      auto const near_to = [&](std::vector<float> const& x, std::vector<float> const& y, char const* what) {
        double error = 0, size = 0;
        for (std::size_t n = 0; n < x.size(); ++n) error += (x[n] - y[n]) * (x[n] - y[n]), size += y[n] * y[n];
        CHECK_MESSAGE(error <= 0x1p-16 * size, what << ", mask " << int(kind) << ": " << std::sqrt(error / size));
        CHECK_MESSAGE(size > 0, what);
      };
      near_to(out_by(exec), out_by(cpu<float>(1)), "out");
      auto const by = d.template of<tensor<float const>>();
      auto const g = vjp(exec, op, in, by), floats = vjp(cpu<float>(1), op, in, by);
      for_each_field([&]<field F>() {
        if constexpr (decltype(op)::uses(F)) near_to(g.of(F).values, floats.of(F).values, name_of(F));
      });
      for (std::size_t n = 0; n < g.parameters.size(); ++n)
        near_to(g.parameters[n].values.values, floats.parameters[n].values.values, "a parameter");
    }
  }

  TEST_CASE("random problems, fixed seed") { check_drawn_problems("fixed seed", 1, case_count(0.1)); }
  TEST_CASE("random problems, fresh seed") { check_drawn_problems("fresh seed", fresh_seed(), case_count(0.1)); }
}

}  // namespace attune::test
