// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How often a predicate mask is asked.
#include <cmath>
#include <vector>

#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

#include "../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 7, keys = 40, width = 3;

/// Every third key, and how often it was asked.
struct asked {
  long* times;
  bool operator()(mask_row const& r, index_t j) const {
    ++*times;
    return (r.query + j) % 3 != 0;
  }
};

std::vector<float> numbers(index_t n, double from) {
  std::vector<float> x;
  for (index_t i = 0; i < n; ++i) x.push_back(float(std::sin(from + 1.7 * double(i))));
  return x;
}

struct problem {
  std::vector<float> q = numbers(heads * queries * width, 1), k = numbers(heads * keys * width, 2), v, out;
  index_t value_width;
  explicit problem(index_t dv)
      : v(numbers(heads * keys * dv, 3)), out(std::size_t(heads * queries * dv)), value_width(dv) {}
  template <class Op>
  inputs<Op, tensor<float const>> in() const {
    return {.q = tensor<float const>(q, shape{1, heads, queries, width}),
            .k = tensor<float const>(k, shape{1, heads, keys, width}),
            .v = tensor<float const>(v, shape{1, heads, keys, value_width})};
  }
  template <class Op>
  outputs<Op, float> to() {
    return {.out = tensor<float>(out, shape{1, heads, queries, value_width})};
  }
};

/// Uses K: ssmax multiplies scores by log K.
auto scaled(long& times) { return ssmax_attention({}, mask::predicate{asked{&times}}); }

}  // namespace

TEST_CASE("thrust: a predicate mask is counted once per row, whatever the width of the values") {
  auto const exec = thrust_on(thrust::host);
  long times = 0;
  auto const op = scaled(times);
  using op_type = decltype(scaled(times));
  problem one(32), three(96);
  forward(exec, op, one.in<op_type>(), one.to<op_type>());
  long const pass = times / 2;  // a task counts its row, and then visits the keys
  times = 0;
  forward(exec, op, three.in<op_type>(), three.to<op_type>());
  CHECK(times == 4 * pass);  // a count, and three tasks that visit
  // The same as with values of one task.
  for (index_t first = 0; first < 96; first += 32) {
    problem part(32);
    for (index_t row = 0; row < heads * keys; ++row)
      for (index_t d = 0; d < 32; ++d) part.v[std::size_t(row * 32 + d)] = three.v[std::size_t(row * 96 + first + d)];
    forward(exec, op, part.in<op_type>(), part.to<op_type>());
    for (index_t row = 0; row < heads * queries; ++row)
      for (index_t d = 0; d < 32; ++d)
        REQUIRE(three.out[std::size_t(row * 96 + first + d)] == part.out[std::size_t(row * 32 + d)]);
  }
}

TEST_CASE("thrust: column sums ask a predicate mask once per pair, and count nothing again") {
  auto const exec = thrust_on(thrust::host);
  long times = 0;
  auto const op = scaled(times);
  using op_type = decltype(scaled(times));
  problem p(4);
  auto const rows = forward_and_save(exec, op, p.in<op_type>(), p.to<op_type>());
  times = 0;
  auto const without = statistics(exec, op, p.in<op_type>(), rows, {.columns = false});
  long const of_rows = times;
  times = 0;
  auto const with = statistics(exec, op, p.in<op_type>(), rows, {.columns = true});
  CHECK(times == of_rows + heads * queries * keys);
  double sum = 0;
  for (float x : with.columns) sum += double(x);
  CHECK(sum == doctest::Approx(double(heads * queries)).epsilon(1e-6));  // the weights of a row sum to 1
}

}  // namespace attune::test
