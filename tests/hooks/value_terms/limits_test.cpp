// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Limits of value terms: vectors of 0, one vector for all keys, rows with one key or none, and wrong tables.
#include <cmath>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cuda/facts.hpp>

#include "../../support/value_terms.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 70, keys = 150, width = 8, value_width = 37;
constexpr shape of_queries{1, heads, queries, width}, of_keys{1, heads, keys, width},
    of_values{1, heads, keys, value_width}, of_out{1, heads, queries, value_width};

using numbers = std::vector<float>;
using view = tensor<float const>;
numbers drawn(index_t n, double seed) {
  numbers x;
  for (index_t i = 0; i < n; ++i) x.push_back(float(std::sin(seed + 1.7 * double(i) + 0.1 * std::cos(double(i)))));
  return x;
}
struct results {
  numbers out, decoded, lse, dq, dk, dv;
  bool operator==(results const&) const = default;
};
struct problem {
  numbers q = drawn(of_queries.size(), 1), k = drawn(of_keys.size(), 2), v = drawn(of_values.size(), 3),
          d = drawn(of_out.size(), 4);
  template <class Op>
  inputs<Op, view> of(Op const&) const {
    return {.q = view(q, of_queries), .k = view(k, of_keys), .v = view(v, of_values)};
  }
  template <class... P>
  results run(P const&... policies) const {
    auto const op = attention(kernel::dot_product{}, policies...);
    auto const in = of(op);
    results to{numbers(d.size()), numbers(d.size()), numbers(std::size_t(heads * queries)), {}, {}, {}};
    auto const lse = natural_lse(tensor<float>(to.lse, {1, heads, queries, 1}));
    auto const saved = forward_and_save(cpu{2}, op, in, {.out = tensor<float>(to.out, of_out), .lse = lse});
    decode(cpu{2}, op, in, {.out = tensor<float>(to.decoded, of_out)});
    auto const g = vjp(cpu{2}, op, in, saved, {.out = view(d, of_out)});
    to.dq = g.of(field::q).values, to.dk = g.of(field::k).values, to.dv = g.of(field::v).values;
    return to;
  }
};

TEST_CASE("value terms: vectors of 0 are no value term, bit by bit") {
  problem const p;
  numbers const zeros(std::size_t(9 * value_width), 0.0f);
  table const none = view(zeros, {1, 1, 9, value_width});
  CHECK(p.run(value_term::relative{none}, mask::causal{}) == p.run(mask::causal{}));
  CHECK(p.run(value_term::relative{none}, normalizer::sink{0.3}) == p.run(normalizer::sink{0.3}));
}

TEST_CASE("value terms: the same vector for all keys is added to the output of softmax") {
  problem const p;
  numbers const same = drawn(value_width, 5);
  auto const with = p.run(value_term::relative{view(same, {1, 1, 1, value_width})}, mask::causal{}),
             without = p.run(mask::causal{});
  CHECK(with.lse == without.lse);
  CHECK(with.dv == without.dv);
  double worst = 0;
  for (std::size_t n = 0; n < with.out.size(); ++n) {
    double const right = double(without.out[n]) + double(same[n % std::size_t(value_width)]);
    worst = std::fmax(worst, std::fabs(double(with.out[n]) - right));
    worst = std::fmax(worst, std::fabs(double(with.decoded[n]) - right));
  }
  CHECK(worst < 2e-6);
}

TEST_CASE("value terms: a row with one key is its value and its vector, a row without keys is 0") {
  numbers const q(8, 0.5f), k(8, 0.25f), v{1, 2, 3, 4}, t{10, 20, 30, 40, 50, 60};
  auto const op = attention(kernel::dot_product{}, value_term::relative{view(t, {1, 1, 3, 2})}, mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  numbers out(4, 7.0f), out_decoded(4, 7.0f);
  auto const in = [&](index_t keys_given, index_t offset) {
    return inputs<op_type, view>{.q = view(q, {1, 1, 2, 4}),
                                 .k = view(k.data(), {1, 1, keys_given, 4}),
                                 .v = view(v.data(), {1, 1, keys_given, 2}),
                                 .offset = offset};
  };
  // Query 0 sees no key, query 1 key 0, at the distance 0.
  forward(cpu{1}, op, in(1, -1), {.out = tensor<float>(out, {1, 1, 2, 2})});
  CHECK(out == numbers{0, 0, 31, 42});
  decode(cpu{1}, op, in(1, -1), {.out = tensor<float>(out_decoded, {1, 1, 2, 2})});
  CHECK(out_decoded == out);
  auto const saved = forward_and_save(cpu{1}, op, in(1, -1), {.out = tensor<float>(out, {1, 1, 2, 2})});
  numbers const ones(4, 1.0f);
  auto const g = vjp(cpu{1}, op, in(1, -1), saved, {.out = view(ones, {1, 1, 2, 2})});
  CHECK(g.table("value_term.vectors").values == std::vector<float>{0, 0, 1, 1, 0, 0});
  // No keys at all.
  forward(cpu{1}, op, in(0, 0), {.out = tensor<float>(out, {1, 1, 2, 2})});
  CHECK(out == numbers{0, 0, 0, 0});
}

TEST_CASE("value terms: values that a row does not see may be NaN") {
  problem p;
  vectors_of_term const x({1, heads, 5, value_width});
  auto const clean = p.run(periodic_term{x}, mask::causal{});
  for (index_t h = 0; h < heads; ++h)
    for (index_t d = 0; d < value_width; ++d) p.v[std::size_t(((h * keys) + keys - 1) * value_width + d)] = float(nan);
  auto const poisoned = p.run(periodic_term{x}, mask::causal{});
  bool same = true, poison = true;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < value_width; ++d) {
        auto const n = std::size_t((h * queries + i) * value_width + d);
        if (i + 1 < queries)
          same = same && poisoned.out[n] == clean.out[n] && poisoned.decoded[n] == clean.decoded[n];
        else
          poison = poison && std::isnan(poisoned.out[n]);
      }
  CHECK(same);
  CHECK(poison);
}

TEST_CASE("value terms: logits of -inf give a row of 0, a NaN in a query spoils its own row alone") {
  problem p;
  vectors_of_term const x({1, heads, 5, value_width});
  auto const clean = p.run(periodic_term{x}, mask::causal{});
  index_t const spoiled = 33;
  for (index_t h = 0; h < heads; ++h) p.q[std::size_t((h * queries + spoiled) * width)] = float(nan);
  auto const got = p.run(periodic_term{x}, mask::causal{});
  bool same = true, poison = true;
  for (std::size_t n = 0; n < got.out.size(); ++n)
    if (index_t(n) / value_width % queries == spoiled)
      poison = poison && std::isnan(got.out[n]) && std::isnan(got.decoded[n]);
    else
      same = same && got.out[n] == clean.out[n] && got.decoded[n] == clean.decoded[n];
  CHECK(same);
  CHECK(poison);

  auto const op = attention(kernel::key_bias{}, periodic_term{x});
  numbers const off(std::size_t(heads * keys), float(-inf));
  inputs<std::remove_const_t<decltype(op)>, view> const in{.v = view(p.v, of_values),
                                                           .key_bias = view(off, {1, heads, keys, 1})};
  numbers out(p.d.size(), 7.0f), decoded(p.d.size(), 7.0f);
  forward(cpu{2}, op, in, {.out = tensor<float>(out, of_out)});
  decode(cpu{2}, op, in, {.out = tensor<float>(decoded, of_out)});
  CHECK(out == numbers(p.d.size(), 0.0f));
  CHECK(decoded == out);
}

/// Needs a row for each distance.
struct exact_distance {
  static constexpr auto role = policy_role::value_term;
  table vectors;
  static constexpr auto parameters() { return std::tuple<>{}; }
  static constexpr auto tables() { return std::array{listed("vectors", &exact_distance::vectors, table_width::any)}; }
  index_t index(index_t distance) const { return distance; }
};

TEST_CASE("value terms: a call reports wrong tables") {
  problem const p;
  auto const error_with = [&](auto const& term) {
    return error_of([&] {
      auto const op = attention(kernel::dot_product{}, term);
      numbers out(p.d.size());
      forward(cpu{1}, op, p.of(op), {.out = tensor<float>(out, of_out)});
    });
  };
  numbers const x(std::size_t(9 * value_width), 1.0f);
  auto const has = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
  CHECK(has(error_with(value_term::relative{}), "table vectors"));
  CHECK(has(error_with(value_term::relative{view(x.data(), {1, 1, 9, value_width - 1})}), "the width of v"));
  CHECK(has(error_with(value_term::relative{view(x.data(), {1, 1, 8, value_width})}), "an odd number"));
  CHECK(has(error_with(value_term::relative{view(x.data(), {1, 3, 3, value_width})}), "table vectors"));
  CHECK(has(error_with(exact_distance{view(x, {1, 1, 9, value_width})}), "for the distance"));
}

struct tensor_cores {
  static constexpr call_table offers = exec_cuda::offers;
};

TEST_CASE("value terms: tensor cores do not offer them") {
  using op = decltype(attention(kernel::dot_product{}, value_term::relative{}));
  CHECK(!offers_call<tensor_cores, call_kind::forward, op>);
  CHECK(offers_call<tensor_cores, call_kind::forward, decltype(attention(kernel::dot_product{}))>);
  CHECK(offers_call<cpu<>, call_kind::jvp, op>);
  CHECK(offers_call<cpu<>, call_kind::decode, op>);
}

}  // namespace
}  // namespace attune::test
