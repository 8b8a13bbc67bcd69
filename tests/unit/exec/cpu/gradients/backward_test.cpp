// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

namespace attune::test {
namespace {

std::vector<double> random_numbers(index_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& y : x) y = normal(random);
  return x;
}

/// A small problem of a dot-product operator.
struct problem_data {
  static constexpr index_t heads = 2, queries = 37, keys = 71, width = 5, value_width = 3;
  shape q_shape{1, heads, queries, width}, k_shape{1, 1, keys, width}, v_shape{1, heads, keys, value_width},
      out_shape{1, heads, queries, value_width};
  std::vector<double> q = random_numbers(q_shape.size(), 1), k = random_numbers(k_shape.size(), 2),
                      v = random_numbers(v_shape.size(), 3), by_out = random_numbers(out_shape.size(), 4),
                      out = std::vector<double>(static_cast<std::size_t>(out_shape.size()));

  template <class Op, class View = tensor<double const>>
  inputs<Op, View> of(Op const&) const {
    return {.q = tensor<double const>(q, q_shape),
            .k = tensor<double const>(k, k_shape),
            .v = tensor<double const>(v, v_shape)};
  }
  tensor<double const> cotangent() const { return {by_out, out_shape}; }
};

template <class T>
bool same_bits(dense_gradients<T> const& a, dense_gradients<T> const& b) {
  for (std::size_t f = 0; f < a.fields.size(); ++f)
    if (a.fields[f].values != b.fields[f].values) return false;
  for (std::size_t p = 0; p < a.parameters.size(); ++p)
    if (a.parameters[p].values.values != b.parameters[p].values.values) return false;
  return true;
}

template <class A, class B>
void check_near(dense_gradients<A> const& got, dense_gradients<B> const& expected, double tolerance) {
  for (std::size_t f = 0; f < expected.fields.size(); ++f) {
    REQUIRE(got.fields[f].values.size() == expected.fields[f].values.size());
    for (std::size_t n = 0; n < expected.fields[f].values.size(); ++n)
      CHECK(double(got.fields[f].values[n]) ==
            doctest::Approx(double(expected.fields[f].values[n])).epsilon(tolerance).scale(1));
  }
  for (std::size_t p = 0; p < expected.parameters.size(); ++p)
    for (std::size_t n = 0; n < expected.parameters[p].values.values.size(); ++n)
      CHECK(double(got.parameters[p].values.values[n]) ==
            doctest::Approx(double(expected.parameters[p].values.values[n])).epsilon(tolerance).scale(1));
}

template <class F>
std::string error_of(F const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("backward: rows saved by the forward pass give the bits of a pass of its own") {
  problem_data d;
  auto const run = [&](auto const& op) {
    auto const in = d.of(op);
    auto const rows = forward_and_save(cpu<double>(2), op, in, {.out = tensor<double>(d.out, d.out_shape)});
    auto const saved = vjp(cpu<double>(1), op, in, rows, {.out = d.cotangent()});
    CHECK(same_bits(saved, vjp(cpu<double>(2), op, in, {.out = d.cotangent()})));
    check_near(
        saved,
        vjp(reference<double>{}, op, d.of<std::remove_cvref_t<decltype(op)>, any_tensor>(op), {.out = d.cotangent()}),
        1e-12);
  };
  run(attention(kernel::dot_product{0.7}, normalizer::sink{0.3}, mask::causal{}));
  run(attention(kernel::l2{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}));
  run(attention(kernel::dot_product{}, normalizer::entmax{1.7}));
  run(attention(kernel::dot_product{}, normalizer::top_k{5}, mask::causal{}));
}

TEST_CASE("backward: states merged from parts serve as saved rows") {
  problem_data d;
  auto const op =
      attention(kernel::dot_product{}, length_scale::margin{0.3, 0.2}, normalizer::off_by_one{}, mask::causal{});
  auto const in = d.of(op);
  auto rows = accumulate(cpu<double>(1), op, in, {0, 20});
  rows = merge(std::move(rows), accumulate(cpu<double>(1), op, in, {45, d.keys}));
  rows = merge(std::move(rows), accumulate(cpu<double>(1), op, in, {20, 45}));
  check_near(vjp(cpu<double>(1), op, in, rows, {.out = d.cotangent()}),
             vjp(cpu<double>(1), op, in, {.out = d.cotangent()}), 1e-12);
}

TEST_CASE("backward: cotangents that are left out are zero, and gradients add over outputs") {
  problem_data d;
  auto const op = attention(kernel::dot_product{}, normalizer::sink{0.3});
  auto const in = d.of(op);
  shape const one_per_row{1, d.heads, d.queries, 1};
  auto const by_lse = random_numbers(one_per_row.size(), 7), by_ground = random_numbers(one_per_row.size(), 8);
  tensor<double const> const lse(by_lse, one_per_row), ground(by_ground, one_per_row);
  auto const all = vjp(cpu<double>(1), op, in, {.out = d.cotangent(), .lse = lse, .ground_weight = ground});
  auto sum = vjp(cpu<double>(1), op, in, {.out = d.cotangent()});
  for (auto const& part :
       {vjp(cpu<double>(1), op, in, {.lse = lse}), vjp(cpu<double>(1), op, in, {.ground_weight = ground})}) {
    for (std::size_t f = 0; f < sum.fields.size(); ++f)
      for (std::size_t n = 0; n < sum.fields[f].values.size(); ++n) sum.fields[f].values[n] += part.fields[f].values[n];
    for (std::size_t p = 0; p < sum.parameters.size(); ++p)
      for (std::size_t n = 0; n < sum.parameters[p].values.values.size(); ++n)
        sum.parameters[p].values.values[n] += part.parameters[p].values.values[n];
  }
  check_near(sum, all, 1e-12);
  auto const none = vjp(cpu<double>(1), op, in, cotangents<std::remove_const_t<decltype(op)>, tensor<double const>>{});
  for (auto const& f : none.fields)
    for (double x : f.values) CHECK(x == 0);
}

TEST_CASE("backward: many tasks, chunks of queries, several waves") {
  auto const check = [](shape const& q_shape, shape const& k_shape) {
    auto const q = random_numbers(q_shape.size(), 1), k = random_numbers(k_shape.size(), 2),
               v = random_numbers(k_shape.size(), 3), by_out = random_numbers(q_shape.size(), 4);
    tensor<double const> const Q(q, q_shape), K(k, k_shape), V(v, k_shape), D(by_out, q_shape);
    auto const op = attention(kernel::dot_product{0.6}, length_scale::ssmax{0.4}, mask::causal_window{9});
    auto const one = vjp(cpu<double>(1), op, {.q = Q, .k = K, .v = V}, {.out = D});
    CHECK(same_bits(one, vjp(cpu<double>(3), op, {.q = Q, .k = K, .v = V}, {.out = D})));
    check_near(one, vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V}, {.out = D}), 1e-11);
  };
  check({1, 2, 2100, 3}, {1, 1, 2100, 3});  // three chunks of a head
  check({5, 8, 3, 4}, {5, 2, 40, 4});       // forty tasks: two waves
}

TEST_CASE("backward: with one key nothing competes, and the gradient by its score is exactly 0") {
  // Two sums of the same products must round alike, however long they are.
  constexpr index_t heads = 2, queries = 41, value_width = 121;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  auto const draw = [&](shape const& e) {
    std::vector<float> x(static_cast<std::size_t>(e.size()));
    for (float& y : x) y = 4 * normal(random);
    return x;
  };
  shape const q_shape{1, heads, queries, 1}, k_shape{1, 1, 1, 1}, v_shape{1, heads, 1, value_width},
      out_shape{1, heads, queries, value_width};
  auto const q = draw(q_shape), k = draw(k_shape), v = draw(v_shape), by_out = draw(out_shape);
  using view = tensor<float const>;
  auto const zero = [](gradient_array<float> const& g) {
    return std::all_of(g.values.begin(), g.values.end(), [](float x) { return x == 0; });
  };
  auto const softmax =
      vjp(cpu{1}, attention(kernel::dot_product{}),
          {.q = view(q, q_shape), .k = view(k, k_shape), .v = view(v, v_shape)}, {.out = view(by_out, out_shape)});
  CHECK(zero(softmax.of(field::q)));
  CHECK(zero(softmax.of(field::k)));
  auto const centered = vjp(cpu{1}, attention(kernel::scalar_difference{}, normalizer::centered_relu{}),
                            {.v = view(v, v_shape), .sort_q = view(q, q_shape), .sort_k = view(k, k_shape)},
                            {.out = view(by_out, out_shape)});
  CHECK(zero(centered.of(field::sort_q)));
  CHECK(zero(centered.of(field::sort_k)));
}

TEST_CASE(
    "backward: of one key with a logit near 0 what goes through the ends of a self-adjusted row cancels exactly") {
  // w = a / a or 0 / -a: a constant, though its factor has the slope 1 / |a|. What is left is the gradient by
  // log-sum-exp.
  constexpr index_t queries = 64, value_width = 17;
  std::vector<float> q(queries), v(value_width), by_out(queries * value_width), by_lse(queries);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (float& x : q) x = 1e-4f * normal(random);
  for (float& x : v) x = normal(random);
  for (float& x : by_out) x = normal(random);
  for (float& x : by_lse) x = normal(random);
  float const k = 1;
  using view = tensor<float const>;
  auto const op =
      attention(kernel::dot_product{.scale = 1}, normalizer::self_adjusted<normalizer::adjusted_form::with_zero>{});
  auto const got =
      vjp(cpu{1}, op,
          {.q = view(q.data(), {1, 1, queries, 1}),
           .k = view(&k, {1, 1, 1, 1}),
           .v = view(v.data(), {1, 1, 1, value_width})},
          {.out = view(by_out.data(), {1, 1, queries, value_width}), .lse = view(by_lse.data(), {1, 1, queries, 1})});
  for (index_t i = 0; i < queries; ++i) {
    CAPTURE(i);
    CHECK(std::fabs(got.of(field::q)(0, 0, i, 0) - by_lse[std::size_t(i)]) <= 1e-5f);
  }
}

TEST_CASE("backward: a key whose score is -inf where all queries see it moves nothing") {
  // 0 weight times an infinite derivative, in the middle of a block in which nothing is masked.
  problem_data d;
  constexpr index_t off = 30;
  for (index_t n = 0; n < index_t(d.q.size()); n += d.width) d.q[std::size_t(n)] = 0.5 + std::abs(d.q[std::size_t(n)]);
  d.k[std::size_t(off * d.width)] = -std::numeric_limits<double>::infinity();
  auto const check = [&](auto const& op) {
    auto const got = vjp(cpu<double>{1}, op, d.of(op), {.out = d.cotangent()});
    check_near(
        got,
        vjp(reference<double>{}, op, d.of<std::remove_cvref_t<decltype(op)>, any_tensor>(op), {.out = d.cotangent()}),
        1e-12);
    for (index_t f = 0; f < d.width; ++f) CHECK(got.of(field::k)(0, 0, off, f) == 0);
    for (auto const& g : got.parameters)
      for (double x : g.values.values) CHECK(std::isfinite(x));
  };
  check(attention(kernel::dot_product{}));
  check(sink_attention(0.25));
  check(attention(kernel::dot_product{}, normalizer::sigmoid{}));
}

TEST_CASE("backward: NaN in one key reaches all keys of a row, blocks without a weight too") {
  constexpr index_t queries = 3, keys = 200, width = 2;
  std::vector<double> const q = random_numbers(queries * width, 1), v = random_numbers(keys * width, 3),
                            by_out = random_numbers(queries * width, 4);
  std::vector<double> k = random_numbers(keys * width, 2);
  for (std::size_t n = 64 * width; n < k.size(); ++n) k[n] *= 1e-3;  // all weight is in the first block
  for (std::size_t n = 0; n < 2; ++n) k[n] *= 50;
  k[7] = std::numeric_limits<double>::quiet_NaN();
  auto const op = attention(kernel::dot_product{}, normalizer::sparsemax{});
  shape const rows{1, 1, queries, width}, columns{1, 1, keys, width};
  auto const gradient = [&](auto const& exec, auto view) {
    using view_type = decltype(view);
    return vjp(exec, op,
               {.q = view_type(tensor<double const>(q, rows)),
                .k = view_type(tensor<double const>(k, columns)),
                .v = view_type(tensor<double const>(v, columns))},
               {.out = tensor<double const>(by_out, rows)});
  };
  auto const got = gradient(cpu<double>{1}, tensor<double const>()).of(field::k).values;
  auto const expected = gradient(reference<double>{}, any_tensor()).of(field::k).values;
  for (std::size_t n = 0; n < got.size(); ++n) CHECK(std::isnan(got[n]) == std::isnan(expected[n]));
  CHECK(std::isnan(expected.back()));
}

TEST_CASE("backward: what is wrong is named") {
  problem_data d;
  auto const op = attention(kernel::dot_product{});
  auto const in = d.of(op);
  auto rows = forward_and_save(cpu<double>(1), op, in, {.out = tensor<double>(d.out, d.out_shape)});
  shape const other{1, d.heads, d.queries, d.value_width + 1};
  std::vector<double> const wide(static_cast<std::size_t>(other.size()), 1.0);
  CHECK(error_of([&] { vjp(cpu<double>(1), op, in, rows, {.out = tensor<double const>(wide, other)}); }) ==
        "attune::vjp: the gradient of out has shape (1, 2, 37, 4); expected (1, 2, 37, 3), the shape of the output");
  rows.extents.queries = 36;
  CHECK(error_of([&] { vjp(cpu<double>(1), op, in, rows, {.out = d.cotangent()}); }) ==
        "attune::vjp: saved has rows of shape (1, 2, 36, 3); expected (1, 2, 37, 3), those of the inputs");
}

TEST_CASE("backward: nothing to do") {
  std::vector<double> const none, one(4, 1.0);
  auto const op = attention(kernel::dot_product{0.5});
  tensor<double const> const no_queries(none, shape{1, 1, 0, 4}), no_keys(none, shape{1, 1, 0, 4}),
      row(one, shape{1, 1, 1, 4});
  auto const g = vjp(cpu<double>(1), op, {.q = no_queries, .k = row, .v = row}, {.out = no_queries});
  for (double x : g.of(field::k).values) CHECK(x == 0);
  auto const h = vjp(cpu<double>(1), op, {.q = row, .k = no_keys, .v = no_keys}, {.out = row});
  for (double x : h.of(field::q).values) CHECK(x == 0);
  CHECK(h.parameter("scale")(0, 0, 0, 0) == 0);
}

}  // namespace
}  // namespace attune::test
