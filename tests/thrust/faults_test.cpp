// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The rows of tests/unit/exec/faults_test.cpp that an executor computes or checks by itself, on Thrust's host system.
#include <cmath>
#include <limits>
#include <vector>

#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/thrust.hpp>

#include "../support/every_function.hpp"
#include "../support/tent.hpp"
#include "../unit/check.hpp"

namespace attune::test {
namespace {

constexpr float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();

/// out and d out / d scores of one row of four keys with values 1, 2, 3, 4; the reference's too.
template <class Op>
void check_row(Op const& op, std::vector<float> const& scores) {
  std::vector<float> const values{1, 2, 3, 4}, one{1};
  std::vector<float> out(1);
  tensor<float const> const S(scores.data(), {1, 1, 1, 4}), V(values.data(), {1, 1, 4, 1}), D(one.data(), {1, 1, 1, 1});
  auto const exec = thrust_on(thrust::host);
  forward(exec, op, {.v = V, .scores = S}, {.out = tensor(out, {1, 1, 1, 1})});
  auto const dense = forward(reference<float>{}, op, {.v = V, .scores = S}).at(0, 0).out(0, 0);
  CHECK((std::isnan(out[0]) ? std::isnan(dense) : near(out[0], dense, 1e-6)));
  auto const got = vjp(exec, op, {.v = V, .scores = S}, {.out = D}).of(field::scores).values;
  auto const right = vjp(reference<float>{}, op, {.v = V, .scores = S}, {.out = D}).of(field::scores).values;
  for (std::size_t j = 0; j < 4; ++j)
    CHECK((std::isnan(got[j]) ? std::isnan(right[j]) : std::fabs(got[j] - right[j]) < 1e-5f));
}

template <class Normalizer>
void check(Normalizer n) {
  auto const op = attention(kernel::given_scores{}, n);
  check_row(op, {-most, -most, -most, -most});  // B1
  check_row(op, {1, 0.5f, -most, -most});
  check_row(op, {1e38f, 0.5f, -most, -most});  // B2
  check_row(op, {infinity, 1, 0.5f, 0});       // B3
}

TEST_CASE("B1, B2, B3: logits of float's lowest number, near its ends, and +inf") {
  check(normalizer::softmax{});
  check(normalizer::off_by_one{});
  check(normalizer::sparsemax{});
  check(normalizer::entmax15{});
  check(normalizer::top_k{2});
  check(normalizer::self_adjusted<normalizer::adjusted_form::product>{});
  check(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{});
}

TEST_CASE("variants, fault 2: the gradient of a selection") {
  auto const op = attention(kernel::given_scores{}, tent{});
  check_row(op, {0, 0.5f, -5, -5});
  check_row(op, {0.25f, 1, 1, -0.5f});
}

TEST_CASE("B6: sin, cos, acos, erf, pow and floor in a kernel of one's own") {
  std::vector<float> q(12), k(60), v(60), out(12), one(12, 1);
  for (std::size_t n = 0; n < k.size(); ++n)
    k[n] = float(2 * std::sin(1.3 * double(n))), v[n] = float(std::cos(0.7 * double(n)));
  for (std::size_t n = 0; n < q.size(); ++n) q[n] = float(3 * std::cos(2.1 * double(n)));
  tensor<float const> const Q(q.data(), {1, 1, 3, 4}), K(k.data(), {1, 1, 15, 4}), V(v.data(), {1, 1, 15, 4}),
      D(one.data(), {1, 1, 3, 4});
  auto const op = attention(every_function{}, normalizer::softmax{});
  auto const exec = thrust_on(thrust::host);
  forward(exec, op, {.q = Q, .k = K, .v = V}, {.out = tensor(out, {1, 1, 3, 4})});
  auto const dense = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});
  for (index_t n = 0; n < 12; ++n)
    CHECK(std::fabs(double(out[std::size_t(n)]) - dense.at(0, 0).out(n / 4, n % 4)) < 1e-5);
  auto const got = vjp(exec, op, {.q = Q, .k = K, .v = V}, {.out = D});
  auto const right = vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V}, {.out = D});
  for (field const f : {field::q, field::k, field::v})
    for (std::size_t n = 0; n < got.of(f).values.size(); ++n)
      CHECK(std::fabs(double(got.of(f).values[n]) - right.of(f).values[n]) < 2e-4);
}

TEST_CASE("F1, B4, B9: cotangents without elements, zeros, outputs that share memory") {
  std::vector<float> x(6, 0.5f), out(6), none;
  tensor<float> const X(x.data(), {1, 1, 3, 2}), O(out.data(), {1, 1, 3, 2});
  auto const exec = thrust_on(thrust::host);
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{});
  CHECK(error_of([&] {
          vjp(exec, op, {.q = X, .k = X, .v = X}, {.out = tensor<float const>(none, {1, 1, 0, 2})});
        }).find("(1, 1, 0, 2)") != std::string::npos);
  tensor<float> const shared(out.data(), {1, 1, 3, 2}, {0, 0, 0, 1});
  CHECK(error_of([&] { forward(exec, op, {.q = X, .k = X, .v = X}, {.out = shared}); }).find("share no memory") !=
        std::string::npos);
  auto const grounded = attention(kernel::dot_product{}, normalizer::valued_off_by_one{});
  forward(exec, grounded, {.q = X, .k = X, .v = X, .v0 = zeros<float>(2)}, {.out = O});
  CHECK(out[0] > 0);
}

}  // namespace
}  // namespace attune::test
