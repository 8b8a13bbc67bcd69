// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows that are read at an index, where the result is known: rows of equal numbers, and sums of gates that are integers.
#include <algorithm>
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/cope.hpp"
#include "../../support/one_call.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;
constexpr index_t heads = 2, queries = 90, keys = 90, width = 4, entries = 7;
one_call const call{.heads = heads, .queries = queries, .keys = keys, .width = width, .value_width = 3};
shape const values{1, heads, queries, 3};

double difference(std::vector<double> const& x, std::vector<double> const& y) {
  double error = x.size() == y.size() ? 0 : inf;
  for (std::size_t n = 0; n < y.size() && std::isfinite(error); ++n)
    error = std::isnan(x[n]) ? inf : std::fmax(error, std::fabs(x[n] - y[n]));
  return error;
}
struct results {
  std::vector<double> out, dq, dk, rows;
};
template <class Op>
results run(Op const& op, view const& rows, view const& gates = {}) {
  auto const plain = call.of<view>(attention(kernel::dot_product{}));
  auto const in = make_inputs<Op, view>([&]<field F>() -> view {
    if constexpr (F == field::position_scores)
      return rows;
    else if constexpr (F == field::bias)
      return gates;
    else
      return member<F>(plain);
  });
  results r;
  r.out.resize(std::size_t(values.size()));
  auto const saved = forward_and_save(cpu<double>{1}, op, in, {.out = tensor<double>(r.out, values)});
  auto const g = vjp(cpu<double>{1}, op, in, saved, {.out = view(call.by_out, values)});
  r.dq = g.of(field::q).values, r.dk = g.of(field::k).values, r.rows = g.of(field::position_scores).values;
  return r;
}

TEST_CASE("interpolated rows: rows of equal numbers shift the logits, which changes nothing") {
  auto const op = attention(cope_before{}, mask::causal{});
  auto const plain = run(attention(kernel::dot_product{}, mask::causal{}), {});
  std::vector<double> const zeros(entries, 0.0), equal(entries, 1.5);
  shape const shared{1, 1, 1, entries};
  auto const none = run(op, view(zeros, shared)), shifted = run(op, view(equal, shared));
  CHECK(none.out == plain.out);  // blocks come in the same order
  CHECK(difference(none.dq, plain.dq) < 1e-13);
  CHECK(difference(none.dk, plain.dk) < 1e-13);
  CHECK(difference(shifted.out, plain.out) < 1e-14);
  CHECK(difference(shifted.dq, plain.dq) < 1e-13);
  CHECK(difference(shifted.dk, plain.dk) < 1e-13);
  double sum = 0;  // softmax does not move if all entries of a row move alike
  for (double x : shifted.rows) sum += x;
  CHECK(std::fabs(sum) < 1e-12);
}

TEST_CASE("interpolated rows: gates of 1 give a bias by distance") {
  // The sum over j <= l <= i is i - j + 1: the row is a table of the distance plus 1, which ends at entries - 1.
  std::vector<double> const ones(std::size_t(queries * keys), 1.0);
  std::vector<double> numbers;
  for (index_t n = 0; n < entries; ++n) numbers.push_back(std::sin(double(n)));
  auto const by_row = run(attention(kernel::dot_product{} + row_at_given_index{}, mask::causal{}),
                          view(numbers, {1, 1, 1, entries}), view(ones, {1, 1, queries, keys}));
  std::vector<double> bias(std::size_t(queries * keys));
  for (index_t i = 0; i < queries; ++i)
    for (index_t j = 0; j <= i; ++j)
      bias[std::size_t(i * keys + j)] = numbers[std::size_t(std::min(i - j + 1, entries - 1))];
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, mask::causal{});
  auto const in = call.of<view>(attention(kernel::dot_product{}));
  inputs<std::remove_const_t<decltype(op)>, view> const with_bias{
      .q = in.q, .k = in.k, .v = in.v, .bias = view(bias, {1, 1, queries, keys})};
  std::vector<double> out(by_row.out.size());
  forward(cpu<double>{1}, op, with_bias, {.out = tensor<double>(out, values)});
  CHECK(difference(by_row.out, out) < 1e-14);
  auto const g = vjp(cpu<double>{1}, op, with_bias, {.out = view(call.by_out, values)});
  CHECK(difference(by_row.dq, g.of(field::q).values) < 1e-13);
  CHECK(difference(by_row.dk, g.of(field::k).values) < 1e-13);
  std::vector<double> sums(std::size_t(entries), 0.0);  // each entry has the gradients of its distances
  for (index_t i = 0; i < queries; ++i)
    for (index_t j = 0; j <= i; ++j)
      sums[std::size_t(std::min(i - j + 1, entries - 1))] += g.of(field::bias).values[std::size_t(i * keys + j)];
  CHECK(difference(by_row.rows, sums) < 1e-12);
}

}  // namespace
}  // namespace attune::test
