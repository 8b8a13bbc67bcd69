// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Statistics of one operator of each family of rows, against those of dense weights.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>
#include <thrust/execution_policy.h>

#include <attune/reference.hpp>
#include <attune/thrust.hpp>

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 6, keys = 150;

bool same(std::vector<double> const& x, std::vector<double> const& y) {
  bool equal = x.size() == y.size();
  for (std::size_t n = 0; equal && n < x.size(); ++n)
    equal = x[n] == y[n] || std::fabs(x[n] - y[n]) <= 1e-12 * (1 + std::fabs(y[n]));
  return equal;
}

template <class Normalizer>
void check_statistics(Normalizer const& normalizer) {
  auto const op = attention(kernel::given_scores{}, normalizer, mask::causal_window{90});
  std::vector<double> scores(std::size_t(heads * queries * keys)), v(std::size_t(heads * keys * 3)),
      out(std::size_t(heads * queries * 3));
  for (std::size_t n = 0; n < scores.size(); ++n)
    scores[n] = n % 11 == 0 ? -math::infinity<double>() : 3 * std::sin(1.7 * double(n));
  for (std::size_t n = 0; n < v.size(); ++n) v[n] = std::cos(double(n));
  auto const view = [](std::vector<double> const& x, index_t positions, index_t features) {
    return tensor<double const>(x, shape{1, heads, positions, features});
  };
  statistics_request const request{.columns = true, .above = 0.02};
  auto const exec = thrust_on<double>(thrust::host);
  auto const rows = forward_and_save(exec, op, {.v = view(v, keys, 3), .scores = view(scores, queries, keys)},
                                     {.out = tensor<double>(out, shape{1, heads, queries, 3})});
  auto const dense = forward(reference<double>{}, op, {.v = view(v, keys, 3), .scores = view(scores, queries, keys)});
  auto const right = statistics(dense, request);
  auto const part = [&](key_interval k) {
    return statistics(exec, op, {.v = view(v, keys, 3), .scores = view(scores, queries, keys)}, rows, request, k);
  };
  CHECK(std::fabs(out[0] - dense.heads[0].out(0, 0)) < 1e-12);
  for (auto const& got : {part({0, keys}), merge(part({100, keys}), merge(part({0, 37}), part({37, 100})))}) {
    CHECK(same(got.highest_logit, right.highest_logit));
    CHECK(same(got.mean_logit, right.mean_logit));
    CHECK(got.scored == right.scored);
    CHECK(same(got.highest_weight, right.highest_weight));
    CHECK(same(got.mass, right.mass));
    CHECK(same(got.first_key, right.first_key));
    CHECK(same(got.ground_weight, right.ground_weight));
    CHECK(same(got.entropy, right.entropy));
    CHECK(got.above == right.above);
    CHECK(same(got.columns, right.columns));
  }
}

TEST_CASE("thrust: statistics of masses") { check_statistics(normalizer::sink{0.5}); }
TEST_CASE("thrust: statistics of an adjusted row") {
  check_statistics(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{});
}
TEST_CASE("thrust: statistics of candidates") { check_statistics(normalizer::sparsemax{}); }

}  // namespace
}  // namespace attune::test
