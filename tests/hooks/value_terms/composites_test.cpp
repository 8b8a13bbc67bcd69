// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Value terms in folds and mixtures, with tensors of 16 and 8 bits, and on products of bf16: against the reference.
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/exec/cpu/bf16/forward.hpp>
#include <attune/exec/cpu/gradients/bf16/backward.hpp>
#include <attune/float8_cache.hpp>
#include <attune/reference.hpp>

#include "../../support/one_call.hpp"
#include "../../support/value_terms.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 40, keys = 75, width = 8, value_width = 21;
constexpr shape rows{1, heads, queries, value_width};

one_call const data{heads, queries, keys, width, value_width};
vectors_of_term const shared({1, 1, 7, value_width}), of_heads({1, heads, 5, value_width}, 2);

auto relative() { return attention(kernel::dot_product{}, value_term::relative{shared}, mask::causal{}); }
auto periodic() { return attention(kernel::dot_product{}, periodic_term{of_heads}, normalizer::sink{0.4}); }

std::vector<double> numbers_of(dense_result<double> const& r) {
  std::vector<double> y;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < value_width; ++d) y.push_back(r.at(0, h).out(i, d));
  return y;
}
template <class X, class Y>
double distance(X const& x, Y const& y) {
  if (x.size() != y.size()) return inf;
  double worst = 0;
  for (std::size_t n = 0; n < x.size(); ++n) worst = std::fmax(worst, std::fabs(double(x[n]) - double(y[n])));
  return worst;
}
template <class Gradients, class Right>
double distance_of(Gradients const& got, Right const& right) {
  double worst = got.tables.size() == right.tables.size() && !got.tables.empty() ? 0 : inf;
  for (field f : {field::q, field::k, field::v})
    worst = std::fmax(worst, distance(got.of(f).values, right.of(f).values));
  for (std::size_t n = 0; n < right.tables.size(); ++n)
    worst = std::fmax(worst, distance(got.tables[n].values.values, right.tables[n].values.values));
  return worst;
}

/// Forward and gradients of the CPU.
template <class Op>
void check(Op const& op) {
  std::vector<double> out(data.by_out.size());
  auto const in = data.of<tensor<double const>>(op);
  auto const all = data.of<any_tensor>(op);
  forward(cpu<double>{2}, op, in, {.out = tensor<double>(out, rows)});
  CHECK(distance(out, numbers_of(forward(reference<double>{}, op, all, rows))) < 1e-12);
  if constexpr (!attune::detail::is_mixture<Op>)
    CHECK(distance_of(vjp(cpu<double>{2}, op, in, {.out = tensor<double const>(data.by_out, rows)}),
                      vjp(reference<double>{}, op, all, {.out = data.cotangent()})) < 1e-11);
}

TEST_CASE("value terms: a fold of two operators, each with its own vectors") {
  check(fold({0.75, -0.5}, relative(), periodic()));
}
TEST_CASE("value terms: a mixture of heads with and without one") {
  static std::vector<index_t> const which{1, 0};
  check(mixture(which, relative(), sink_attention(0.3)));
}

/// The same tensors in T, and what they hold.
template <class T>
struct stored {
  std::vector<T> q = of(data.q), k = of(data.k), v = of(data.v);
  std::vector<double> wide_q = widened(q), wide_k = widened(k), wide_v = widened(v);
  static std::vector<T> of(std::vector<double> const& x) {
    std::vector<T> y;
    for (double n : x) y.push_back(T(float(n)));
    return y;
  }
  static std::vector<double> widened(std::vector<T> const& x) {
    std::vector<double> y;
    for (T const& n : x) y.push_back(double(float(n)));
    return y;
  }
  template <class View, class Op, class Numbers>
  static inputs<Op, View> in(Op const&, Numbers const& q, Numbers const& k, Numbers const& v) {
    auto const view = [](auto const& x, index_t n, index_t w) {
      return View(tensor<typename Numbers::value_type const>(x, shape{1, heads, n, w}));
    };
    return {.q = view(q, queries, width), .k = view(k, keys, width), .v = view(v, keys, value_width)};
  }
  template <class Op>
  dense_result<double> exact(Op const& op) const {
    return forward(reference<double>{}, op, in<any_tensor>(op, wide_q, wide_k, wide_v));
  }
};

TEST_CASE("value terms: tensors of 16 bits") {
  auto const op = relative();
  stored<bfloat16> const x;
  auto const in = stored<bfloat16>::in<tensor<bfloat16 const>>(op, x.q, x.k, x.v);
  auto const exact = numbers_of(x.exact(op));
  std::vector<bfloat16> out(exact.size());
  forward(cpu<bfloat16>{1}, op, in, {.out = tensor<bfloat16>(out, rows)});
  CHECK(distance(stored<bfloat16>::widened(out), exact) < 0x1p-7);
  decode(cpu<bfloat16>{1}, op, in, {.out = tensor<bfloat16>(out, rows)});
  CHECK(distance(stored<bfloat16>::widened(out), exact) < 0x1p-7);
}

TEST_CASE("value terms: keys and values of 8 bits") {
  auto const op = relative();
  using E = float8_e4m3fn;
  using view = float8_view<float, E>;
  stored<E> const x;
  stored<float> const floats;
  inputs<std::remove_const_t<decltype(op)>, view> const in{
      .q = view(tensor<float const>(floats.q, shape{1, heads, queries, width})),
      .k = view(tensor<E const>(x.k, shape{1, heads, keys, width}), 0.5f),
      .v = view(tensor<E const>(x.v, shape{1, heads, keys, value_width}), 2.0f)};
  auto k = x.wide_k, v = x.wide_v;
  for (double& n : k) n *= 0.5;
  for (double& n : v) n *= 2;
  auto const exact =
      numbers_of(forward(reference<double>{}, op, stored<float>::in<any_tensor>(op, floats.wide_q, k, v)));
  std::vector<float> out(exact.size());
  forward(cpu_float8_cache<E>{}, op, in, {.out = tensor<float>(out, rows)});
  CHECK(distance(out, exact) < 1e-5);
  decode(cpu_float8_cache<E>{}, op, in, {.out = tensor<float>(out, rows)});
  CHECK(distance(out, exact) < 1e-5);
}

TEST_CASE("value terms: products of bf16") {
  auto const op = relative();
  stored<bfloat16> const rounded;
  stored<float> x;
  x.q = std::vector<float>(rounded.wide_q.begin(), rounded.wide_q.end());
  x.k = std::vector<float>(rounded.wide_k.begin(), rounded.wide_k.end());
  x.v = std::vector<float>(rounded.wide_v.begin(), rounded.wide_v.end());
  auto const in = stored<float>::in<tensor<float const>>(op, x.q, x.k, x.v);
  cpu_bf16_products<xsimd::default_arch, float, bf16_emulated> const exec(1);
  std::vector<float> out(std::size_t(rows.size()));
  auto const by = stored<float>::of(stored<bfloat16>::widened(stored<bfloat16>::of(data.by_out)));
  auto const saved = forward_and_save(exec, op, in, {.out = tensor<float>(out, rows)});
  CHECK(distance(out, numbers_of(rounded.exact(op))) < 0x1p-6);
  auto const got = vjp(exec, op, in, saved, {.out = tensor<float const>(by, rows)});
  auto const wide = stored<float>::widened(by);
  auto const right =
      vjp(reference<double>{}, op, stored<float>::in<any_tensor>(op, rounded.wide_q, rounded.wide_k, rounded.wide_v),
          {.out = any_tensor(tensor<double const>(wide, rows))});
  CHECK(distance_of(got, right) < 0.1);
  double largest = 0;
  for (double n : right.tables[0].values.values) largest = std::fmax(largest, std::fabs(n));
  CHECK(distance(got.tables[0].values.values, right.tables[0].values.values) < 1e-2 * largest);
}

}  // namespace
}  // namespace attune::test
