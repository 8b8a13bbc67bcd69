// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Scores, gates and biases with extents of 1: what they give is what their expansion gives, their gradient is the sum
// of its.
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

constexpr index_t batch = 2, heads = 4, queries = 37, keys = 141, width = 6;
constexpr shape rows{batch, heads, queries, width}, columns{batch, 2, keys, width}, pairs{batch, heads, queries, keys};

std::vector<float> numbers(index_t n, double from, double size = 1) {
  std::vector<float> x;
  for (index_t i = 0; i < n; ++i) x.push_back(float(size * std::sin(from + 1.7 * double(i))));
  return x;
}

/// The same numbers over all extents.
std::vector<float> expanded(std::vector<float> const& x, shape const& e, shape const& all = pairs) {
  std::vector<float> to;
  for (index_t b = 0; b < all.batch; ++b)
    for (index_t h = 0; h < all.head; ++h)
      for (index_t i = 0; i < all.position; ++i)
        for (index_t j = 0; j < all.feature; ++j) to.push_back(x[std::size_t(gradient_array<float>(e).at(b, h, i, j))]);
  return to;
}

constexpr shape shapes[]{{1, 1, 1, keys},       {1, heads, queries, keys}, {batch, 1, queries, keys},
                         {1, 1, queries, keys}, {batch, heads, 1, keys},   {batch, 1, 1, keys}};

struct problem {
  std::vector<float> q = numbers(rows.size(), 1), k = numbers(columns.size(), 2), v = numbers(columns.size(), 3),
                     by = numbers(rows.size(), 4);
};

/// Checks calls of `op` whose field F has the extents `e` instead of `all`; make(problem, view of F) gives the inputs.
template <field F, class Op, class Make>
void check(Op const& op, shape const& e, Make const& make, shape const& all_extents = pairs) {
  CAPTURE(std::string(to_string(e)));
  problem const p;
  std::vector<float> const shared = numbers(e.size(), 5, 0.7), whole = expanded(shared, e, all_extents);
  tensor const S(shared, e), W(whole, all_extents);
  std::vector<float> a(std::size_t(rows.size())), b(a.size()), c(a.size());
  tensor const by(p.by, rows);
  auto const few = make(p, S);
  auto const all = make(p, W);
  forward(cpu{1}, op, few, {.out = tensor(a, rows)});
  forward(cpu{1}, op, all, {.out = tensor(b, rows)});
  CHECK(a == b);
  if constexpr (offers_call<cpu<>, call_kind::decode, Op>) {
    decode(cpu{2}, op, few, {.out = tensor(a, rows)});
    decode(cpu{2}, op, all, {.out = tensor(c, rows)});
    CHECK(a == c);
  }
  auto const one = vjp(cpu{1}, op, few, {.out = by}), three = vjp(cpu{3}, op, few, {.out = by}),
             full = vjp(cpu{2}, op, all, {.out = by});
  CHECK(one.of(F).values == three.of(F).values);
  CHECK(one.of(field::v).values == full.of(field::v).values);
  REQUIRE(one.of(F).extents == e);
  gradient_array<double> sum(e), size(e);
  for (index_t bb = 0; bb < all_extents.batch; ++bb)
    for (index_t h = 0; h < all_extents.head; ++h)
      for (index_t i = 0; i < all_extents.position; ++i)
        for (index_t j = 0; j < all_extents.feature; ++j) {
          sum(bb, h, i, j) += double(full.of(F)(bb, h, i, j));
          size(bb, h, i, j) += std::fabs(double(full.of(F)(bb, h, i, j)));
        }
  for (std::size_t n = 0; n < sum.values.size(); ++n)
    CHECK(std::fabs(double(one.of(F).values[n]) - sum.values[n]) <= 1e-6 * size.values[n] + 1e-9);

  auto const exact =
      vjp(reference<double>{}, op, make_inputs<Op, any_tensor>([&]<field G>() { return any_tensor(member<G>(few)); }),
          {.out = any_tensor(by)});
  for (std::size_t n = 0; n < sum.values.size(); ++n)
    CHECK(std::fabs(double(one.of(F).values[n]) - exact.of(F).values[n]) <=
          3e-5 * size.values[n] + 3e-7);  // without FMA, too
}

template <class Op>
using views = inputs<Op, tensor<float const>>;

TEST_CASE("a bias shared by batches, heads and queries") {
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, mask::causal{});
  auto const grounded = attention(kernel::dot_product{} + kernel::bias{}, normalizer::valued_off_by_one{});
  auto const sparse = attention(kernel::dot_product{} + kernel::bias{}, normalizer::entmax15{});
  std::vector<float> const ground = numbers(width, 9);
  for (shape const& e : shapes) {
    auto const plain = [](problem const& p, tensor<float const> x) {
      return std::tuple(tensor(p.q, rows), tensor(p.k, columns), tensor(p.v, columns), x);
    };
    check<field::bias>(op, e, [&](problem const& p, tensor<float const> x) {
      auto const [q, k, v, bias] = plain(p, x);
      return views<std::remove_const_t<decltype(op)>>{.q = q, .k = k, .v = v, .bias = bias};
    });
    check<field::bias>(grounded, e, [&](problem const& p, tensor<float const> x) {
      auto const [q, k, v, bias] = plain(p, x);
      return views<std::remove_const_t<decltype(grounded)>>{
          .q = q, .k = k, .v = v, .bias = bias, .v0 = tensor<float const>(ground, {1, 1, 1, width})};
    });
    check<field::bias>(sparse, e, [&](problem const& p, tensor<float const> x) {
      auto const [q, k, v, bias] = plain(p, x);
      return views<std::remove_const_t<decltype(sparse)>>{.q = q, .k = k, .v = v, .bias = bias};
    });
  }
}

TEST_CASE("given gates shared by batches, heads and queries") {
  auto const op = attention(kernel::dot_product{}, gate::given_softplus{1.0});
  for (shape const& e : shapes)
    check<field::gates>(op, e, [&](problem const& p, tensor<float const> x) {
      return views<std::remove_const_t<decltype(op)>>{
          .q = tensor(p.q, rows), .k = tensor(p.k, columns), .v = tensor(p.v, columns), .gates = x};
    });
}

TEST_CASE("gates of values and of outputs, shared") {
  auto const valued = attention(kernel::dot_product{}, gate::sigmoid_value{});
  auto const sparse =
      attention(kernel::dot_product{}, normalizer::sparsemax{}, gate::sigmoid_value{}, gate::sigmoid_output{});
  std::vector<float> const open = numbers(rows.size(), 8);
  for (shape const& e : {shape{1, 2, keys, width}, shape{batch, 1, keys, width}, shape{1, 1, keys, width}}) {
    check<field::value_gate>(
        valued, e,
        [&](problem const& p, tensor<float const> x) {
          return views<std::remove_const_t<decltype(valued)>>{
              .q = tensor(p.q, rows), .k = tensor(p.k, columns), .v = tensor(p.v, columns), .value_gate = x};
        },
        columns);
    check<field::value_gate>(
        sparse, e,
        [&](problem const& p, tensor<float const> x) {
          return views<std::remove_const_t<decltype(sparse)>>{.q = tensor(p.q, rows),
                                                              .k = tensor(p.k, columns),
                                                              .v = tensor(p.v, columns),
                                                              .value_gate = x,
                                                              .output_gate = tensor(open, rows)};
        },
        columns);
  }
  auto const opened = attention(kernel::dot_product{}, gate::sigmoid_output{}, mask::causal{});
  for (index_t const features : {width, index_t(1)})
    for (shape const& e : {shape{1, heads, queries, features}, shape{batch, 1, 1, features}, shape{1, 1, 1, features}})
      check<field::output_gate>(
          opened, e,
          [&](problem const& p, tensor<float const> x) {
            return views<std::remove_const_t<decltype(opened)>>{
                .q = tensor(p.q, rows), .k = tensor(p.k, columns), .v = tensor(p.v, columns), .output_gate = x};
          },
          {batch, heads, queries, features});
}

TEST_CASE("16-bit gates, shared") {
  auto const op = attention(kernel::dot_product{}, gate::sigmoid_value{}, gate::sigmoid_output{});
  auto const narrow = [](std::vector<float> const& x) {
    std::vector<bfloat16> to;
    for (float const y : x) to.emplace_back(y);
    return to;
  };
  problem const p;
  shape const gate_extents{1, 1, keys, width}, open_extents{1, heads, 1, width};
  std::vector<float> const gates = numbers(gate_extents.size(), 5), open = numbers(open_extents.size(), 6);
  auto const q = narrow(p.q), k = narrow(p.k), v = narrow(p.v), g = narrow(gates), o = narrow(open);
  auto const all_g = narrow(expanded(gates, gate_extents, columns)), all_o = narrow(expanded(open, open_extents, rows));
  std::vector<bfloat16> a(std::size_t(rows.size())), b(a.size());
  auto const Q = tensor(q, rows), K = tensor(k, columns), V = tensor(v, columns);
  forward(cpu<bfloat16>{}, op,
          {.q = Q, .k = K, .v = V, .value_gate = tensor(g, gate_extents), .output_gate = tensor(o, open_extents)},
          {.out = tensor(a, rows)});
  forward(cpu<bfloat16>{}, op,
          {.q = Q, .k = K, .v = V, .value_gate = tensor(all_g, columns), .output_gate = tensor(all_o, rows)},
          {.out = tensor(b, rows)});
  for (std::size_t n = 0; n < a.size(); ++n) CHECK(a[n].bits == b[n].bits);
}

TEST_CASE("the direction of a shared bias, and the output's shape where pairs alone tell it") {
  problem const p;
  shape const e{1, heads, 1, keys};
  std::vector<float> const bias = numbers(e.size(), 5), along = numbers(e.size(), 6);
  std::vector<float> const whole = expanded(bias, e), whole_along = expanded(along, e);
  auto const op = attention(kernel::dot_product{} + kernel::bias{});
  auto const Q = tensor(p.q, rows), K = tensor(p.k, columns), V = tensor(p.v, columns);
  auto const few = jvp(cpu{}, op, {.q = Q, .k = K, .v = V, .bias = {tensor(bias, e), tensor(along, e)}});
  auto const all = jvp(cpu{}, op, {.q = Q, .k = K, .v = V, .bias = {tensor(whole, pairs), tensor(whole_along, pairs)}});
  CHECK(few.out_along.values == all.out_along.values);

  auto const given = attention(kernel::given_scores{});
  std::vector<float> const scores = numbers(queries * keys, 7);
  std::vector<float> const by = numbers(batch * 2 * queries * width, 8);
  auto const g = vjp(cpu{}, given, {.v = V, .scores = tensor(scores, {1, 1, queries, keys})},
                     {.out = tensor(by, {batch, 2, queries, width})});
  CHECK(g.of(field::scores).extents == shape{1, 1, queries, keys});
}

TEST_CASE("a mask of keys at run time: one row for all queries") {
  std::vector<unsigned char> seen(std::size_t(batch * keys)), all;
  for (std::size_t n = 0; n < seen.size(); ++n) seen[n] = n % 3 != 1;
  for (index_t b = 0; b < batch; ++b)
    for (index_t i = 0; i < queries; ++i) all.insert(all.end(), seen.begin() + b * keys, seen.begin() + (b + 1) * keys);
  problem const p;
  std::vector<float> a(std::size_t(rows.size())), b(a.size());
  auto const run = [&](std::vector<unsigned char> const& visible, index_t positions, std::vector<float>& to) {
    mask::runtime const m{.visible = visible.data(), .visible_shape = {batch, 1, positions, keys}};
    forward(cpu{}, attention(kernel::dot_product{}, m),
            {.q = tensor(p.q, rows), .k = tensor(p.k, columns), .v = tensor(p.v, columns)}, {.out = tensor(to, rows)});
  };
  run(seen, 1, a);
  run(all, queries, b);
  CHECK(a == b);
  CHECK(error_of([&] { run(all, 2, a); }).find("1 or 37") != std::string::npos);
}

}  // namespace
}  // namespace attune::test
