// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../unit/check.hpp"
#include "calls.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;

TEST_CASE("fold: gradients of terms, and of the coefficient at its granularity") {
  fold_call const d;
  auto const inner = softmax_attention(mask::causal{});
  std::vector<double> const shared{-0.5}, by_head{-0.8, -0.5, 0.25};
  std::vector<double> const by_batch{0.5, 2};
  std::vector<double> by_row;
  for (index_t n = 0; n < d.batch * d.heads * d.queries; ++n) by_row.push_back(std::cos(double(n)));
  struct granularity {
    std::vector<double> const* values;
    shape extents;
  };
  // The operator alone, with the cotangents of the terms: c_c d out.
  std::vector<double> terms(std::size_t(d.out_shape().size() * 2));
  shape const wide{d.batch, 2 * d.heads, d.queries, d.value_width};
  forward(cpu<double>{1}, inner, d.of<view>(inner), {.out = tensor<double>(terms, wide)});
  for (auto const& [values, extents] : {granularity{&shared, {1, 1, 1, 1}},
                                        {&by_batch, {d.batch, 1, 1, 1}},
                                        {&by_head, {1, d.heads, 1, 1}},
                                        {&by_row, {d.batch, d.heads, d.queries, 1}}}) {
    shape const e = extents;  // clang 14: a lambda cannot use a structured binding, and CAPTURE has one
    CAPTURE(to_string(e));
    parameter const second = tensor<double const>(*values, e);
    auto const op = fold(inner, {0.75, second});
    std::vector<double> spread(terms.size());
    gradient_array<double> by_second(e), by_first(shape{1, 1, 1, 1});
    for (index_t b = 0; b < d.batch; ++b)
      for (index_t h = 0; h < d.heads; ++h)
        for (index_t i = 0; i < d.queries; ++i)
          for (index_t x = 0; x < d.value_width; ++x) {
            double const by = d.cotangent()(b, h, i, x);
            auto const at = [&](std::vector<double>& of, index_t c) -> double& {
              return tensor<double>(of, wide)(b, 2 * h + c, i, x);
            };
            at(spread, 0) = 0.75 * by;
            at(spread, 1) = second.at(b, h, i) * by;
            by_first(b, h, i, 0) += by * at(terms, 0);
            by_second(b, h, i, 0) += by * at(terms, 1);
          }
    auto const expected =
        vjp(reference<double>{}, inner, d.of<any_tensor>(inner), {.out = tensor<double const>(spread, wide)});
    std::vector<double> out(std::size_t(d.out_shape().size()));
    auto const saved =
        forward_and_save(cpu<double>{2}, op, d.of<view>(op), {.out = tensor<double>(out, d.out_shape())});
    dense_gradients<double> const got[]{vjp(cpu<double>{2}, op, d.of<view>(op), {.out = d.cotangent()}),
                                        vjp(cpu<double>{3}, op, d.of<view>(op), saved, {.out = d.cotangent()}),
                                        vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()})};
    for (auto const& g : got) {
      for (field f : {field::q, field::k, field::v}) {
        REQUIRE(g.of(f).values.size() == expected.of(f).values.size());
        for (std::size_t n = 0; n < g.of(f).values.size(); ++n)
          CHECK(g.of(f).values[n] == doctest::Approx(expected.of(f).values[n]).epsilon(1e-12).scale(1));
      }
      REQUIRE(g.parameter("fold.1").extents == e);
      CHECK(g.parameter("fold.0").values[0] == doctest::Approx(by_first.values[0]).epsilon(1e-12).scale(1));
      for (std::size_t n = 0; n < by_second.values.size(); ++n)
        CHECK(g.parameter("fold.1").values[n] == doctest::Approx(by_second.values[n]).epsilon(1e-12).scale(1));
      CHECK(g.parameter("kernel.scale").values[0] ==
            doctest::Approx(expected.parameter("scale").values[0]).epsilon(1e-12).scale(1));
    }
    CHECK(got[0].parameter("fold.1").values == got[1].parameter("fold.1").values);
    CHECK(got[0].of(field::k).values == got[1].of(field::k).values);
  }
}

TEST_CASE("fold: jvp agrees with vjp, on both executors") {
  fold_call const d;
  std::vector<double> const by_head{-0.8, -0.5, 0.25}, along{0.5, 1, -2};
  auto const op = fold(softmax_attention(mask::causal{}), {0.75, per_head(by_head)});
  policy_direction const direction{.parameters = {{"fold.1", per_head(along)}, {"scale", 0.5}}};
  std::vector<double> const dq = d.numbers(d.heads * d.terms * d.queries * d.width, 9);
  auto const moving = [&]<class Moving>(Moving const&) {
    using view_type = std::conditional_t<std::is_same_v<Moving, tangent_tensor>, any_tensor, view>;
    return make_inputs<std::remove_const_t<decltype(op)>, Moving>([&]<field F>() {
      if constexpr (F == field::q) return Moving(view_type(d.dq()), view_type(view(dq, d.dq().extents())));
      if constexpr (F == field::k) return Moving(view_type(d.dk()));
      if constexpr (F == field::v) return Moving(view_type(d.dv()));
    });
  };
  auto const g = vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()});
  double expected = 0;
  for (std::size_t n = 0; n < dq.size(); ++n) expected += dq[n] * g.of(field::q).values[n];
  for (std::size_t n = 0; n < along.size(); ++n) expected += along[n] * g.parameter("fold.1").values[n];
  expected += 0.5 * g.parameter("scale").values[0];
  auto const fused = jvp(cpu<double>{2}, op, moving(moving_tensor<double>()), direction);
  auto const dense = jvp(reference<double>{}, op, moving(tangent_tensor()), direction);
  double by_cpu = 0, by_reference = 0;
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h)
      for (index_t i = 0; i < d.queries; ++i)
        for (index_t x = 0; x < d.value_width; ++x) {
          by_cpu += d.cotangent()(b, h, i, x) * fused.out_along(b, h, i, x);
          by_reference += d.cotangent()(b, h, i, x) * dense.at(b, h).out(i, x).tangent[0];
          CHECK(fused.out(b, h, i, x) == doctest::Approx(dense.at(b, h).out(i, x).value).epsilon(1e-13).scale(1));
        }
  CHECK(by_cpu == doctest::Approx(expected).epsilon(1e-12).scale(1));
  CHECK(by_reference == doctest::Approx(expected).epsilon(1e-12).scale(1));
  CHECK(error_of([&] {
          jvp(cpu<double>{1}, op, moving(moving_tensor<double>()), {.parameters = {{"fold.2", 1.0}}});
        }) == "attune::jvp: direction.parameters has the name fold.2; expected a parameter of the operator");
}

TEST_CASE("fold: jvp_of_vjp is the derivative of vjp along a direction") {
  fold_call const d{.batch = 1, .heads = 2, .queries = 3, .keys = 4, .width = 2, .value_width = 2};
  std::vector<double> by_head{-0.8, 0.25};
  auto const op = fold(softmax_attention(), {0.75, per_head(by_head)});
  using op_type = std::remove_const_t<decltype(op)>;
  std::vector<double> const dq = d.numbers(d.heads * d.terms * d.queries * d.width, 9);
  any_tensor const along = view(dq, d.dq().extents());
  inputs<op_type, tangent_tensor> const in{.q = {d.dq(), along}, .k = d.dk(), .v = d.dv()};
  cotangents<op_type, tangent_tensor> by;
  by.out = d.cotangent();
  auto const exact = jvp_of_vjp(reference<double>{}, op, in, by, {.parameters = {{"fold.1", 0.5}}});
  double const h = 1e-5;
  auto const moved = [&](double step) {
    fold_call x = d;
    for (std::size_t n = 0; n < dq.size(); ++n) x.q[n] += step * dq[n];
    std::vector<double> coefficients = by_head;
    for (double& c : coefficients) c += 0.5 * step;
    auto const other = fold(softmax_attention(), {0.75, per_head(coefficients)});
    return vjp(reference<double>{}, other, x.of<any_tensor>(other), {.out = d.cotangent()});
  };
  auto const high = moved(h), low = moved(-h);
  for (field f : {field::q, field::k, field::v})
    for (std::size_t n = 0; n < exact.of(f).values.size(); ++n)
      CHECK(exact.of(f).values[n].tangent[0] ==
            doctest::Approx((high.of(f).values[n] - low.of(f).values[n]) / (2 * h)).epsilon(1e-7).scale(1));
  for (char const* name : {"fold.0", "fold.1", "scale"}) {
    auto const e = exact.parameter(name);
    auto const up = high.parameter(name), down = low.parameter(name);
    for (std::size_t n = 0; n < e.values.size(); ++n)
      CHECK(e.values[n].tangent[0] ==
            doctest::Approx((up.values[n] - down.values[n]) / (2 * h)).epsilon(1e-7).scale(1));
  }
}

}  // namespace
}  // namespace attune::test
