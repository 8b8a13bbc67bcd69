// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../check.hpp"
#include "fold_calls.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;

/// softmax(q1 k1) v - lambda softmax(q2 k2) v of one row, written out.
std::vector<double> differential_row(fold_call const& d, index_t b, index_t h, index_t i, double lambda) {
  std::vector<double> out(std::size_t(d.value_width), 0);
  for (index_t c = 0; c < 2; ++c) {
    index_t const head = 2 * h + c, last = i + d.keys - d.queries;
    std::vector<double> e;
    double sum = 0;
    for (index_t j = 0; j <= last; ++j) {
      double dot = 0;
      for (index_t x = 0; x < d.width; ++x) dot += d.dq()(b, head, i, x) * d.dk()(b, head, j, x);
      e.push_back(std::exp(dot / std::sqrt(double(d.width))));
      sum += e.back();
    }
    for (index_t j = 0; j <= last; ++j)
      for (index_t x = 0; x < d.value_width; ++x)
        out[std::size_t(x)] += (c == 0 ? 1 : -lambda) * e[std::size_t(j)] / sum * d.dv()(b, h, j, x);
  }
  return out;
}

TEST_CASE("fold: differential attention is one line, on both executors") {
  fold_call const d;
  std::vector<double> const minus_lambda{-0.8, -0.5, 0.25};
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, per_head(minus_lambda)});
  std::vector<double> out(std::size_t(d.out_shape().size()), nan), decoded(out);
  tensor<double> const to(out, d.out_shape());
  forward(cpu<double>{2}, op, d.of<view>(op), {.out = to});
  decode(cpu<double>{2}, op, d.of<view>(op), {.out = tensor<double>(decoded, d.out_shape())});
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op));
  CHECK(dense.extents.heads == d.heads);
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h)
      for (index_t i = 0; i < d.queries; ++i) {
        auto const row = differential_row(d, b, h, i, -minus_lambda[std::size_t(h)]);
        for (index_t x = 0; x < d.value_width; ++x) {
          double const expected = row[std::size_t(x)];
          CHECK(to(b, h, i, x) == doctest::Approx(expected).epsilon(1e-13).scale(1));
          CHECK(tensor<double>(decoded, d.out_shape())(b, h, i, x) == doctest::Approx(expected).epsilon(1e-13).scale(1));
          CHECK(dense.at(b, h).out(i, x) == doctest::Approx(expected).epsilon(1e-13).scale(1));
        }
      }
}

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
  for (auto const& [values, e] : {granularity{&shared, {1, 1, 1, 1}},
                                  {&by_batch, {d.batch, 1, 1, 1}},
                                  {&by_head, {1, d.heads, 1, 1}},
                                  {&by_row, {d.batch, d.heads, d.queries, 1}}}) {
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

TEST_CASE("fold: one term with coefficient 1, and coefficients {1, 0}, have the bits of the operator") {
  fold_call d;
  auto const inner = softmax_attention();
  shape const wide{d.batch, 2 * d.heads, d.queries, d.value_width};
  std::vector<double> alone(std::size_t(wide.size())), once(alone), even(std::size_t(d.out_shape().size()));
  forward(cpu<double>{1}, inner, d.of<view>(inner), {.out = tensor<double>(alone, wide)});
  auto const single = fold(inner, {1.0});
  forward(cpu<double>{3}, single, d.of<view>(single), {.out = tensor<double>(once, wide)});
  CHECK(once == alone);
  auto const first = fold(inner, {1.0, 0.0});
  forward(cpu<double>{3}, first, d.of<view>(first), {.out = tensor<double>(even, d.out_shape())});
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h)
      for (index_t i = 0; i < d.queries; ++i)
        for (index_t x = 0; x < d.value_width; ++x)
          CHECK(tensor<double>(even, d.out_shape())(b, h, i, x) == tensor<double>(alone, wide)(b, 2 * h, i, x));
}

}  // namespace
}  // namespace attune::test
