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
          CHECK(tensor<double>(decoded, d.out_shape())(b, h, i, x) ==
                doctest::Approx(expected).epsilon(1e-13).scale(1));
          CHECK(dense.at(b, h).out(i, x) == doctest::Approx(expected).epsilon(1e-13).scale(1));
        }
      }
}

TEST_CASE("fold: one term with coefficient 1, and coefficients {1, 0}, have the bits of the operator") {
  fold_call const d;
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

TEST_CASE("fold: bits of out depend on neither threads nor strides") {
  fold_call const d;
  std::vector<double> const minus_lambda{-0.8, -0.5, 0.25};
  auto const op = fold(softmax_attention(), {0.3, per_head(minus_lambda)});
  std::vector<double> dense(std::size_t(d.out_shape().size())), spread(3 * dense.size());
  tensor<double> const to(dense, d.out_shape());
  strides s = strides::dense(d.out_shape());
  s = {3 * s.batch, 3 * s.head, 3 * s.position, 3 * s.feature};
  tensor<double> const strided(spread.data(), d.out_shape(), s);
  forward(cpu<double>{1}, op, d.of<view>(op), {.out = to});
  forward(cpu<double>{3}, op, d.of<view>(op), {.out = strided});
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h)
      for (index_t i = 0; i < d.queries; ++i)
        for (index_t x = 0; x < d.value_width; ++x) CHECK(to(b, h, i, x) == strided(b, h, i, x));
}

TEST_CASE("fold: a NaN reaches its own row and head, also through a coefficient of 0") {
  fold_call d;
  auto const op = fold(softmax_attention(mask::causal{}), {1.0, 0.0});
  index_t const row = 2;
  d.q[std::size_t((1 * d.queries + row) * d.width)] = nan;  // batch 0, term 1 of head 0
  std::vector<double> out(std::size_t(d.out_shape().size()));
  tensor<double> const to(out, d.out_shape());
  forward(cpu<double>{1}, op, d.of<view>(op), {.out = to});
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op));
  for (index_t b = 0; b < d.batch; ++b)
    for (index_t h = 0; h < d.heads; ++h)
      for (index_t i = 0; i < d.queries; ++i)
        for (index_t x = 0; x < d.value_width; ++x) {
          bool const reached = b == 0 && h == 0 && i == row;
          CHECK(std::isnan(to(b, h, i, x)) == reached);
          CHECK(std::isnan(dense.at(b, h).out(i, x)) == reached);
        }
}

TEST_CASE("fold: what is wrong is named") {
  fold_call const d;
  std::vector<double> out(std::size_t(d.out_shape().size()));
  auto const inner = softmax_attention();
  auto const failure = [&](parameter const& second, shape const& e) {
    auto const op = fold(inner, {1.0, second});
    return error_of([&] { forward(cpu<double>{1}, op, d.of<view>(op), {.out = tensor<double>(out.data(), e)}); });
  };
  std::vector<double> const two{1, 2};
  CHECK(failure(nan, d.out_shape()) ==
        "attune::forward: parameter fold.1 has the value nan at (batch, head, query) = (0, 0, 0); expected a finite "
        "number");
  CHECK(failure(-inf, d.out_shape()) ==
        "attune::forward: parameter fold.1 has the value -inf at (batch, head, query) = (0, 0, 0); expected a finite "
        "number");
  CHECK(failure(parameter(), d.out_shape()) ==
        "attune::forward: parameter fold.1 has no value; expected a number, or a view of numbers");
  CHECK(failure(per_head(two), d.out_shape()) ==
        "attune::forward: parameter fold.1 has shape (1, 2, 1, 1); expected (1 or 2, 1 or 3, 1 or 5, 1)");
  CHECK(failure(0.5, {d.batch, 2, d.queries, d.value_width}) ==
        "attune::forward: q has head extent 6; expected 4, the fold's 2 terms of 2 heads of out");
  auto const three = fold(inner, {1.0, 0.5, 0.25});
  fold_call const five{.heads = 5, .terms = 1};
  CHECK(error_of([&] { vjp(reference<double>{}, three, five.of<any_tensor>(three), {.out = five.cotangent()}); }) ==
        "attune::vjp: the query inputs has head extent 5; expected a multiple of 3, the terms of the fold");
  auto const op = fold(inner, {1.0, 0.5});
  CHECK(error_of([&] { vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = five.cotangent()}); }) ==
        "attune::vjp: the gradient of out has shape (2, 5, 5, 3); expected (2, 3, 5, 3), the shape of the output");
}

}  // namespace
}  // namespace attune::test
