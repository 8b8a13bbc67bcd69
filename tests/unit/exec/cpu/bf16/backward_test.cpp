// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// vjp() by products of bf16 pairs: against the bound of gradients, and the same bits whatever must not matter.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "arithmetic.hpp"
#include "gradients.hpp"

namespace attune::test {
TEST_SUITE("backward by bf16 products") {
  TEST_CASE("widths around vectors, odd numbers of keys, grouped heads") {
    constexpr few_extents all[] = {{1, 33, 1, 1, 1, 1, 1},    {7, 64, 2, 2, 1, 1, 9},   {16, 7, 3, 3, 1, 3, 2},
                                   {31, 20, 63, 4, 1, 1, 33}, {33, 17, 65, 6, 2, 3, 5}, {24, 16, 129, 2, 1, 2, 40}};
    for (few_extents const& x : all) {
      check_backward(soft, x);
      check_backward_of<bfdot_emulated>(soft, x, 0);
      check_backward_of_tiles(soft, x);
    }
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
    problem_extents const e{.heads = 1, .queries = 1, .keys = 1, .width = 9, .value_width = 45};
    table_mask const mask(sees::all, e);
    auto op = soft;
    op.mask = mask.mask();
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      attune::testing::detail::normal_numbers random(seed);
      problem<decltype(op)> p(e, random);
      // Numbers far apart, so that sums round: another order gives another sum.
      p.change(field::v, [](double x, index_t, index_t, index_t d) { return std::ldexp(x, int(d % 13)); });
      rounded_cotangents<decltype(op)> const d(p);
      cotangents<decltype(op), tensor<float const>> by;
      by.out = p.by_out().view<tensor<float const>>();  // not rounded, as q, k and v
      auto const check = [&]<class Unit>(Unit) {
        auto const g = vjp(products_of<float, Unit>(cpu<float>(1)), op, p.inputs<tensor<float const>>(), by);
        for (field f : {field::q, field::k})
          CHECK(std::count(g.of(f).values.begin(), g.of(f).values.end(), 0.0f) == e.width);
        CHECK(g.of(field::v).values == d.out.floats);
      };
      each_pair_unit(check);
      check(amx_emulated{});
      if_there<amx_tiles>(check);
    }
  }

  TEST_CASE("float tensors are rounded once; elements of a batch do not meet") {
    attune::testing::detail::normal_numbers random(44);
    problem_extents const e{
        .batch = 2, .heads = 4, .queries = 37, .keys = 90, .width = 11, .value_width = 19, .key_heads = 2};
    table_mask const mask(sees::causal, e);
    auto op = soft;
    op.mask = mask.mask();
    auto const check = [&]<class Unit>(Unit) {
      products_of<float, Unit> const exec(cpu<float>(2));
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
    };
    check(bf16_emulated{});
    check(amx_emulated{});
    if_there<amx_tiles>(check);
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
      auto const compare_of = [&]<class Unit>(Unit, std::string const& what) {
        auto const by = d.of<tensor<float const>>();
        auto const g = vjp(products_of<float, Unit>(cpu<float>(1)), op, p.inputs<tensor<float const>>(), by);
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
      auto const compare = [&](std::string const& what) {
        if_there<amx_tiles>([&]<class Unit>(Unit unit) { compare_of(unit, what + ", tiles"); });
        return compare_of(bf16_emulated{}, what) + compare_of(amx_emulated{}, what + ", emulated tiles");
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

  TEST_CASE("random problems, fixed seed") {
    double largest = 0;
    for (index_t n = 0; n < case_count(0.2); ++n) check_drawn(soft, std::uint64_t(n + 1), 0, &largest);
    for (index_t n = 0; n < case_count(0.2); ++n) check_drawn<amx_emulated>(soft, std::uint64_t(n + 1), 0, &largest);
    MESSAGE("largest share of a bound: " << largest);
  }
}

}  // namespace attune::test
