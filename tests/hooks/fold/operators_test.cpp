// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Folds of several operators, states of parts of the keys, 16-bit tensors, pages.
#include <cmath>
#include <cstdint>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../unit/check.hpp"
#include "calls.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;

TEST_CASE("fold: several operators over the same heads, paths begin with the number of the operator") {
  fold_call const d{.terms = 1};
  std::vector<double> const by_head{-0.8, 0, 0.25};
  auto const first = sink_attention(0.5, mask::causal{});
  auto const second = sparsemax_attention();
  auto const op = fold({0.75, per_head(by_head)}, first, second);
  std::vector<double> out(std::size_t(d.out_shape().size())), a(out), b(out), spread_a(out), spread_b(out);
  forward(cpu<double>{2}, op, d.of<view>(op), {.out = tensor<double>(out, d.out_shape())});
  forward(cpu<double>{1}, first, d.of<view>(first), {.out = tensor<double>(a, d.out_shape())});
  forward(cpu<double>{1}, second, d.of<view>(second), {.out = tensor<double>(b, d.out_shape())});
  double by_first = 0;
  std::vector<double> by_second(3);
  for (std::size_t n = 0; n < out.size(); ++n) {
    auto const h = n / std::size_t(d.queries * d.value_width) % std::size_t(d.heads);
    CHECK(out[n] == doctest::Approx(0.75 * a[n] + by_head[h] * b[n]).epsilon(1e-14).scale(1));
    spread_a[n] = 0.75 * d.by_out[n];
    spread_b[n] = by_head[h] * d.by_out[n];
    by_first += d.by_out[n] * a[n];
    by_second[h] += d.by_out[n] * b[n];
  }
  auto const ga = vjp(reference<double>{}, first, d.of<any_tensor>(first), {.out = view(spread_a, d.out_shape())});
  auto const gb = vjp(reference<double>{}, second, d.of<any_tensor>(second), {.out = view(spread_b, d.out_shape())});
  auto const saved = forward_and_save(cpu<double>{2}, op, d.of<view>(op), {.out = tensor<double>(out, d.out_shape())});
  for (auto const& g : {vjp(cpu<double>{2}, op, d.of<view>(op), saved, {.out = d.cotangent()}),
                        vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()})}) {
    for (field f : {field::q, field::k, field::v})
      for (std::size_t n = 0; n < g.of(f).values.size(); ++n)
        CHECK(g.of(f).values[n] == doctest::Approx(ga.of(f).values[n] + gb.of(f).values[n]).epsilon(1e-12).scale(1));
    CHECK(g.parameter("fold.0").values[0] == doctest::Approx(by_first).epsilon(1e-12).scale(1));
    for (std::size_t h = 0; h < 3; ++h)
      CHECK(g.parameter("fold.1").values[h] == doctest::Approx(by_second[h]).epsilon(1e-12).scale(1));
    CHECK(g.parameter("0.normalizer.logit").values[0] ==
          doctest::Approx(ga.parameter("logit").values[0]).epsilon(1e-12).scale(1));
    CHECK(g.parameters.size() == 2 + ga.parameters.size() + gb.parameters.size());
  }
}

TEST_CASE("fold: states of parts of the keys merge and finish to the same rows") {
  fold_call const d;
  std::vector<double> const minus_lambda{-0.8, -0.5, 0.25};
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, per_head(minus_lambda)});
  std::vector<double> whole(std::size_t(d.out_shape().size())), merged(whole), exact(whole);
  forward(cpu<double>{1}, op, d.of<view>(op), {.out = tensor<double>(whole, d.out_shape())});
  auto const in = d.of<view>(op);
  auto const states =
      merge(accumulate(cpu<double>{2}, op, in, {3, d.keys}), accumulate(cpu<double>{2}, op, in, {0, 3}));
  finish(cpu<double>{2}, op, in, states, {.out = tensor<double>(merged, d.out_shape())});
  auto const every = d.of<any_tensor>(op);
  auto const dense = merge(accumulate(reference<double>{}, op, every, {3, d.keys}),
                           accumulate(reference<double>{}, op, every, {0, 3}));
  finish(reference<double>{}, op, every, dense, {.out = tensor<double>(exact, d.out_shape())});
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CHECK(merged[n] == doctest::Approx(whole[n]).epsilon(1e-13).scale(1));
    CHECK(exact[n] == doctest::Approx(whole[n]).epsilon(1e-13).scale(1));
  }
}

TEST_CASE("fold: terms of 16-bit tensors are floats, and out is rounded once") {
  fold_call const d;
  std::vector<bfloat16> narrow[3];
  std::vector<float> wide[3];
  int n = 0;
  for (auto const* from : {&d.q, &d.k, &d.v}) {
    for (double x : *from) {
      narrow[n].push_back(bfloat16(float(x)));
      wide[n].push_back(float(narrow[n].back()));
    }
    ++n;
  }
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, -0.75});
  using op_type = std::remove_const_t<decltype(op)>;
  auto const inputs_of = [&]<class E>(std::vector<E> const(&from)[3]) {
    return inputs<op_type, tensor<E const>>{.q = tensor<E const>(from[0], d.dq().extents()),
                                            .k = tensor<E const>(from[1], d.dk().extents()),
                                            .v = tensor<E const>(from[2], d.dv().extents())};
  };
  std::vector<bfloat16> out(std::size_t(d.out_shape().size()));
  std::vector<float> expected(out.size());
  auto const check = [&] {
    for (std::size_t x = 0; x < out.size(); ++x) CHECK(out[x].bits == bfloat16(expected[x]).bits);
  };
  forward(cpu<float>{1}, op, inputs_of(wide), {.out = tensor<float>(expected, d.out_shape())});
  forward(cpu<bfloat16>{2}, op, inputs_of(narrow), {.out = tensor<bfloat16>(out, d.out_shape())});
  check();
  decode(cpu<float>{1}, op, inputs_of(wide), {.out = tensor<float>(expected, d.out_shape())});
  decode(cpu<bfloat16>{2}, op, inputs_of(narrow), {.out = tensor<bfloat16>(out, d.out_shape())});
  check();
}

TEST_CASE("fold: decode from pages has the rows of decode from one piece") {
  fold_call const d{.batch = 1, .keys = 8};
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, -0.75});
  std::vector<double> whole(std::size_t(d.out_shape().size())), paged(whole);
  decode(cpu<double>{1}, op, d.of<view>(op), {.out = tensor<double>(whole, d.out_shape())});
  // Two pages of 4 keys, stored in the order 1, 0.
  auto const in_pages = [&](view const& x) {
    shape const e = x.extents();
    std::vector<double> to;
    for (index_t page : {1, 0})
      for (index_t h = 0; h < e.head; ++h)
        for (index_t j = 0; j < 4; ++j)
          for (index_t f = 0; f < e.feature; ++f) to.push_back(x(0, h, 4 * page + j, f));
    return to;
  };
  std::vector<double> const k = in_pages(d.dk()), v = in_pages(d.dv());
  std::vector<std::int32_t> const order{1, 0};
  decode(cpu<double>{1}, op,
         {.q = d.dq(),
          .k = view(k, shape{2, d.heads * d.terms, 4, d.width}),
          .v = view(v, shape{2, d.heads, 4, d.value_width})},
         page_table(order, 1), {.out = tensor<double>(paged, d.out_shape())});
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK(paged[n] == doctest::Approx(whole[n]).epsilon(1e-13).scale(1));
}

}  // namespace
}  // namespace attune::test
