// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() by products of bf16 pairs: against the bound of gradients, and the same bits whatever must not matter.
#include <cmath>
#include <iterator>
#include <limits>

#include <support/random.hpp>

#include "gradients.hpp"

namespace attune::test {
namespace {

auto const two_products = attention(kernel::tupe(), length_scale::ssmax{}, normalizer::sigmoid{}, mask::runtime{});
auto const adjusted = attention(
    kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}, mask::runtime{});

/// One problem under every mask. gates: of values and outputs; values are then positive.
template <class Unit, class Op>
void check_backward_of(Op op, problem_extents const& e, int gates) {
  attune::testing::detail::normal_numbers random(41);
  double largest = 0;
  for (sees kind : every_mask) {
    table_mask const mask(kind, e);
    op.mask = mask.mask();
    problem<Op> p(e, random);
    round_to_bf16(p);
    if (gates > 0) p.change(field::v, [](double x, index_t, index_t, index_t) { return std::fabs(x); });
    rounded_cotangents<Op> const d(p);
    products_of<float, Unit> const one(cpu<float>(1)), two(cpu<float>(2));
    auto const in = [&] { return p.template inputs<tensor<float const>>(); };
    auto const by = d.template of<tensor<float const>>();
    auto const g = vjp(one, op, in(), by);
    std::string const where =
        attune::detail::text("mask ", int(kind), ", H ", e.heads, "/", e.key_heads, "/", e.value_heads, ", Lq ",
                             e.queries, ", Lk ", e.keys, ", D ", e.width, "/", e.value_width);
    std::string const wrong = beyond_gradient_bound(g, op, p, d.template of<any_tensor>(), gates, &largest);
    CHECK_MESSAGE(wrong == "", where << ": " << wrong);
    CHECK_MESSAGE(different(g, vjp(two, op, in(), by)) == "", where << ": two threads");
    std::vector<float> out(std::size_t(p.extents().size()));
    auto const saved = forward_and_save(one, op, in(), {.out = tensor<float>(out, p.extents())});
    CHECK_MESSAGE(different(g, vjp(two, op, in(), saved, by)) == "", where << ": saved rows");
    for (index_t apart : {1, 2}) {
      stored_gradients<Op> to(p);
      vjp(products_of<bfloat16, Unit>(cpu<bfloat16>(1)), op, stored_problem(p, apart)(), d.stored(), to.to);
      CHECK_MESSAGE(to.are(g), where << ": bf16 tensors, features " << apart << " apart");
    }
    if constexpr (!std::is_same_v<Unit, bf16_emulated>)
      CHECK_MESSAGE(different(g, vjp(products_of<float, bf16_emulated>(cpu<float>(1)), op, in(), by)) == "",
                    where << ": the twin");
    p.poison(mask);
    CHECK_MESSAGE(different(g, vjp(one, op, in(), by)) == "", where << ": garbage changed bits");
  }
  MESSAGE("largest share of a bound: " << largest);
}
template <class Op>
void check_backward(Op const& op, problem_extents const& e, int gates = 0) {
  check_backward_of<bf16_emulated>(op, e, gates);
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  check_backward_of<bf16_instructions>(op, e, gates);
#endif
}

/// One random problem: forward and backward within their bounds, the same bits by two threads.
template <class Op>
void check_drawn(Op op, std::uint64_t seed, int gates, double* largest) {
  rng random(seed);
  attune::testing::detail::normal_numbers numbers(seed);
  auto const from = [&](int low, int high) { return index_t(random.between(low, high)); };
  index_t const groups = from(1, 2);
  problem_extents e{.batch = from(1, 2),
                    .heads = groups * from(1, 2),
                    .queries = from(1, random.chance(0.1) ? 40 : 12),
                    .keys = from(1, random.chance(0.1) ? 140 : 24),
                    .width = from(1, 12),
                    .value_width = from(1, 20),
                    .key_heads = random.chance(0.5) ? groups : 1};
  sees const kind = every_mask[random.between(0, index(std::size(every_mask)) - 1)];
  table_mask const mask(kind, e);
  op.mask = mask.mask();
  problem<Op> p(e, numbers);
  round_to_bf16(p);
  if (gates > 0) p.change(field::v, [](double x, index_t, index_t, index_t) { return std::fabs(x); });
  rounded_cotangents<Op> const d(p);
  products_of<float, bf16_emulated> const one(cpu<float>(1)), two(cpu<float>(2));
  auto const in = p.template inputs<tensor<float const>>();
  auto const by = d.template of<tensor<float const>>();
  auto const g = vjp(one, op, in, by);
  std::string wrong = beyond_gradient_bound(g, op, p, d.template of<any_tensor>(), gates, largest);
  auto const out = written_by<float>(op, p.extents(), [&](auto const& to) { forward(one, op, in, to); });
  if (wrong.empty()) wrong = beyond_bound(out, op, p, 1 + (Op::has_value_gate ? 1 : 0));
  if (wrong.empty() && different(g, vjp(two, op, in, by)) != "") wrong = "two threads";
  CHECK_MESSAGE(wrong == "", "seed " << seed << ", mask " << int(kind) << ": " << wrong);
}
/// `count` random problems of several operators.
void check_drawn_problems(char const* name, std::uint64_t first, index_t count) {
  double largest = 0;
  auto const gated = attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}, mask::runtime{});
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

TEST_SUITE("backward by bf16 products") {
  TEST_CASE("widths around vectors, odd numbers of keys, grouped heads") {
    constexpr few_extents all[] = {{1, 33, 1, 1, 1, 1, 1}, {7, 64, 2, 2, 1, 1, 9}, {16, 7, 3, 3, 1, 3, 2},
                                   {31, 20, 63, 4, 1, 1, 33}, {33, 17, 65, 6, 2, 3, 5}, {24, 16, 129, 2, 1, 2, 40}};
    for (few_extents const& x : all) check_backward(soft, x);
  }

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
    check_backward(attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{}, mask::runtime{}), e,
                   2);
  }

  TEST_CASE("the bound leaves no room: one query, whose weights are rounded") {
    attune::testing::detail::normal_numbers random(42);
    problem_extents const e{.heads = 1, .queries = 1, .keys = 120, .width = 4, .value_width = 8};
    table_mask const mask(sees::all, e);
    auto op = soft;
    op.mask = mask.mask();
    problem<decltype(op)> p(e, random);
    round_to_bf16(p);
    rounded_cotangents<decltype(op)> d(p);
    products_of<float, bf16_emulated> const exec(cpu<float>(1));
    double largest = 0;
    auto const check = [&](attune::cotangents<decltype(op), tensor<float const>> const& by,
                           attune::cotangents<decltype(op), any_tensor> const& exact) {
      auto const g = vjp(exec, op, p.inputs<tensor<float const>>(), by);
      CHECK(beyond_gradient_bound(g, op, p, exact, 0, &largest) == "");
      CHECK(largest > 0.8);
      largest = 0;
    };
    check(d.of<tensor<float const>>(), d.of<any_tensor>());  // dV = P do
    auto by = d.of<tensor<float const>>();
    auto exact = d.of<any_tensor>();
    by.out = {}, exact.out = {};
    check(by, exact);  // dK = P dlse q
  }

  TEST_CASE("a row with one key: no gradient by its score") {
    attune::testing::detail::normal_numbers random(43);
    problem_extents const e{.heads = 1, .queries = 1, .keys = 1, .width = 9, .value_width = 21};
    table_mask const mask(sees::all, e);
    auto op = soft;
    op.mask = mask.mask();
    problem<decltype(op)> p(e, random);
    rounded_cotangents<decltype(op)> const d(p);
    cotangents<decltype(op), tensor<float const>> by;
    by.out = p.by_out().view<tensor<float const>>();  // not rounded, as q, k and v
    auto const g = vjp(products_of<float, bf16_emulated>(cpu<float>(1)), op, p.inputs<tensor<float const>>(), by);
    for (field f : {field::q, field::k})
      for (float x : g.of(f).values) CHECK(x == 0);
    for (std::size_t n = 0; n < g.of(field::v).values.size(); ++n)
      CHECK(g.of(field::v).values[n] == d.out.floats[n]);
  }

  TEST_CASE("float tensors are rounded once; elements of a batch do not meet") {
    attune::testing::detail::normal_numbers random(44);
    problem_extents const e{.batch = 2, .heads = 4, .queries = 37, .keys = 90, .width = 11, .value_width = 19, .key_heads = 2};
    table_mask const mask(sees::causal, e);
    auto op = soft;
    op.mask = mask.mask();
    products_of<float, bf16_emulated> const exec(cpu<float>(2));
    problem<decltype(op)> p(e, random);
    cotangents<decltype(op), tensor<float const>> by;
    by.out = p.by_out().view<tensor<float const>>();
    auto const given = vjp(exec, op, p.inputs<tensor<float const>>(), by);
    auto const whole = p.inputs<tensor<float const>>();
    auto const element = [](tensor<float const> const& x, index_t b) {
      shape e_of = x.extents();
      e_of.batch = 1;
      return tensor<float const>(x.row(b, 0, 0), e_of, x.steps());
    };
    for (index_t b = 0; b < e.batch; ++b) {
      cotangents<decltype(op), tensor<float const>> own;
      own.out = element(by.out, b);
      auto const alone =
          vjp(exec, op, {.q = element(whole.q, b), .k = element(whole.k, b), .v = element(whole.v, b)}, own);
      for (field f : {field::q, field::k, field::v}) {
        auto const& x = alone.of(f).values;
        CHECK(std::equal(x.begin(), x.end(), given.of(f).values.begin() + b * index_t(x.size())));
      }
    }
    rounded_cotangents<decltype(op)> const d(p);
    round_to_bf16(p);
    by.out = d.out.view<tensor<float const>>();
    CHECK(different(given, vjp(exec, op, p.inputs<tensor<float const>>(), by)) == "");
  }

  TEST_CASE("NaN and infinities reach the gradients that they reach in float, and no others") {
    problem_extents const e{.heads = 2, .queries = 40, .keys = 70, .width = 5, .value_width = 6, .key_heads = 1};
    for (sees kind : {sees::causal, sees::window, sees::sink_and_window, sees::some}) {
      attune::testing::detail::normal_numbers random(45);
      table_mask const mask(kind, e);
      auto op = soft;
      op.mask = mask.mask();
      problem<decltype(op)> p(e, random);
      round_to_bf16(p);
      rounded_cotangents<decltype(op)> d(p);
      auto const compare = [&](std::string const& what) {
        auto const by = d.of<tensor<float const>>();
        auto const g = vjp(products_of<float, bf16_emulated>(cpu<float>(1)), op, p.inputs<tensor<float const>>(), by);
        auto const floats = vjp(cpu<float>(1), op, p.inputs<tensor<float const>>(), by);
        int other = 0, broken = 0;
        for (std::size_t f = 0; f < g.fields.size(); ++f)
          for (std::size_t n = 0; n < g.fields[f].values.size(); ++n) {
            float const x = g.fields[f].values[n], y = floats.fields[f].values[n];
            other += std::isnan(x) != std::isnan(y) || std::isinf(x) != std::isinf(y);
            broken += !std::isfinite(x);
          }
        CHECK_MESSAGE(other == 0, "mask " << int(kind) << ", " << what << ": " << other << " numbers differ");
        return broken;
      };
      CHECK(compare("nothing") == 0);
      int broken = 0;
      for (double bad : {double(nan), HUGE_VAL, -HUGE_VAL}) {
        for (field f : {field::q, field::k, field::v})
          for (index_t at : {0, 33, 39}) {
            auto const kept = p.of(f);
            p.change(f, [&](double x, index_t, index_t i, index_t c) { return i == at && c == 2 ? bad : x; });
            broken += compare(attune::detail::text("field ", int(f), " at ", at, ": ", bad));
            p.of(f) = kept;
          }
        auto const kept = d.out;
        for (index_t at : {0, 33, 39}) {
          d.out.floats[std::size_t(at * e.value_width + 2)] = float(bad);
          broken += compare(attune::detail::text("do at ", at, ": ", bad));
          d.out = kept;
        }
      }
      CHECK(broken > 0);
    }
  }

  TEST_CASE("random problems, fixed seed") { check_drawn_problems("fixed seed", 1, case_count(0.1)); }
  TEST_CASE("random problems, fresh seed") { check_drawn_problems("fresh seed", fresh_seed(), case_count(0.1)); }
}

}  // namespace attune::test
