// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the tests of the registry do not reach: mixtures, values wider than a task, k beyond what a column keeps,
// projected parameters, errors.
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

#if defined(XSIMD_VERSION_MAJOR) || defined(EIGEN_WORLD_VERSION) || defined(BOOST_LIB_VERSION)
#error "attune/thrust.hpp needs Thrust alone"
#endif

#include <cmath>
#include <string>
#include <vector>

#include <attune/reference.hpp>

#include "../support/one_call.hpp"
#include "../support/own_contractions.hpp"
#include "../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 3, queries = 5, keys = 150, width = 4, value_width = 37;

one_call data() { return {heads, queries, keys, width, value_width}; }

bool same(std::vector<double> const& x, std::vector<double> const& y) {
  bool equal = x.size() == y.size();
  for (std::size_t n = 0; equal && n < x.size(); ++n) equal = std::fabs(x[n] - y[n]) <= 1e-11 * (1 + std::fabs(y[n]));
  return equal;
}

/// out of both executors, and every gradient.
template <class Op>
void check_against_reference(Op const& op) {
  one_call const d = data();
  auto const exec = thrust_on<double>(thrust::host);
  std::vector<double> out(d.by_out.size()), expected;
  forward(exec, op, d.of<tensor<double const>>(op),
          {.out = tensor<double>(out, shape{1, heads, queries, value_width})});
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op));
  for (auto const& head : dense.heads)
    for (index_t i = 0; i < queries; ++i)
      for (index_t c = 0; c < value_width; ++c) expected.push_back(head.out(i, c));
  CHECK(same(out, expected));
  auto const got = vjp(exec, op, d.of<tensor<double const>>(op),
                       {.out = tensor<double const>(d.by_out, shape{1, heads, queries, value_width})});
  auto const right = vjp(reference<double>{}, op, d.of<any_tensor>(op), {.out = d.cotangent()});
  for (std::size_t f = 0; f < right.fields.size(); ++f)
    CHECK_MESSAGE(same(got.fields[f].values, right.fields[f].values), std::string(name_of(field(f))));
  REQUIRE(got.parameters.size() == right.parameters.size());
  for (std::size_t n = 0; n < right.parameters.size(); ++n) {
    CHECK_MESSAGE(same(got.parameters[n].values.values, right.parameters[n].values.values), right.parameters[n].path);
    CHECK_MESSAGE(same(got.parameters[n].x.values, right.parameters[n].x.values), right.parameters[n].path);
    CHECK_MESSAGE(same(got.parameters[n].weight.values, right.parameters[n].weight.values), right.parameters[n].path);
  }
  REQUIRE(got.tables.size() == right.tables.size());
  for (std::size_t n = 0; n < right.tables.size(); ++n)
    CHECK_MESSAGE(same(got.tables[n].values.values, right.tables[n].values.values), right.tables[n].path);
}

TEST_CASE("thrust: values wider than one task, parameters of every granularity") {
  std::vector<double> const levels = one_call::numbers(heads, 7);
  check_against_reference(sink_attention(per_head(levels), mask::causal_window{40}));
}

TEST_CASE("thrust: a mixture is each operator over its own heads") {
  std::vector<index_t> const which{1, 0, 1};
  check_against_reference(mixture(which, sink_attention(0.5, mask::causal_window{4}),
                                  attention(kernel::scalar_sort{0.5}, normalizer::sparsemax{}, mask::causal{})));
}

TEST_CASE("thrust: top-k keeps more keys than a column has room for") { check_against_reference(top_k_attention(100)); }

TEST_CASE("thrust: a projected parameter and a moving average") {
  std::vector<double> const x = one_call::numbers(heads * queries * 2, 8), weight = one_call::numbers(heads * 2, 9);
  parameter const alpha = projection{.x = tensor<double const>(x, shape{1, heads, queries, 2}),
                                     .weight = tensor<double const>(weight, shape{1, heads, 1, 2}),
                                     .activation = activation::sigmoid};
  check_against_reference(
      affine_scaled_attention(alpha, parameter::moving_average(alpha, 0.4, 0.9, average_gradient::passed)));
}

TEST_CASE("thrust: contractions that attune does not have") {
  std::vector<double> const slopes = one_call::numbers(heads * 9 * width, 10), waves = one_call::numbers(heads * 3, 11),
                            weight = one_call::numbers(1, 12);
  tensor<double const> const few(waves, shape{1, heads, 3, 1});
  check_against_reference(attention(tableless_kernel<own::fading>{} + tableless_kernel<own::agreement>{}));
  check_against_reference(attention(warped_kernel{tensor<double const>(slopes, shape{1, heads, 9, width})} +
                                        weighted_bias_kernel{tensor<double const>(weight, shape{1, 1, 1, 1})} +
                                        cauchy_kernel{few, few},
                                    mask::causal{}));
}

TEST_CASE("thrust: errors are those of every executor") {
  one_call const d = data();
  auto const op = softmax_attention();
  std::vector<double> out(d.by_out.size());
  auto in = d.of<tensor<double const>>(op);
  in.k = tensor<double const>(d.k, shape{1, heads, keys * width / 2, 2});
  std::string const text = error_of([&] {
    forward(thrust_on<double>(thrust::host), op, in,
            {.out = tensor<double>(out, shape{1, heads, queries, value_width})});
  });
  CHECK_MESSAGE(text.find("forward: k has") != std::string::npos, text);
}

TEST_CASE("biases and gates with extents of 1 are shared, and their gradients summed") {
  constexpr index_t batch = 2, h = 4, lq = 5, lk = 23, wide = 3;
  shape const rows{batch, h, lq, wide}, columns{batch, 2, lk, wide};
  auto const numbers = [](shape const& e, double from) {
    std::vector<float> x;
    for (index_t n = 0; n < e.size(); ++n) x.push_back(float(std::sin(from + 1.7 * double(n))));
    return x;
  };
  shape const bias{1, h, 1, lk}, gates{1, 1, lk, wide}, open{batch, 1, 1, 1};
  auto const q = numbers(rows, 1), k = numbers(columns, 2), v = numbers(columns, 3), x = numbers(bias, 4),
             g = numbers(gates, 5), o = numbers(open, 6), by = numbers(rows, 7);
  std::vector<float> out(q.size());
  auto const op = attention(kernel::dot_product{} + kernel::bias{}, gate::sigmoid_value{}, gate::sigmoid_output{});
  tensor const Q(q, rows), K(k, columns), V(v, columns), X(x, bias), G(g, gates), O(o, open), D(by, rows);
  auto const exec = thrust_on(thrust::host);
  forward(exec, op, {.q = Q, .k = K, .v = V, .bias = X, .value_gate = G, .output_gate = O}, {.out = tensor(out, rows)});
  auto const dense =
      forward(reference<double>{}, op, {.q = Q, .k = K, .v = V, .bias = X, .value_gate = G, .output_gate = O});
  for (index_t n = 0; n < rows.size(); ++n) {
    index_t const row = n / wide;
    CHECK(std::fabs(double(out[std::size_t(n)]) - dense.at(row / lq / h, row / lq % h).out(row % lq, n % wide)) < 1e-5);
  }
  auto const got = vjp(exec, op, {.q = Q, .k = K, .v = V, .bias = X, .value_gate = G, .output_gate = O}, {.out = D});
  auto const right =
      vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V, .bias = X, .value_gate = G, .output_gate = O}, {.out = D});
  for (field const f : {field::q, field::k, field::v, field::bias, field::value_gate, field::output_gate}) {
    REQUIRE(got.of(f).extents == right.of(f).extents);
    for (std::size_t n = 0; n < got.of(f).values.size(); ++n)
      CHECK(std::fabs(double(got.of(f).values[n]) - right.of(f).values[n]) < 1e-4);
  }
}

}  // namespace
}  // namespace attune::test
