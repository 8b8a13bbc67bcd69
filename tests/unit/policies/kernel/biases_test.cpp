// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Biases: which row of a table a distance reads, and what becomes of the number read.
#include <vector>

#include <attune/policies/kernel/bias.hpp>
#include <attune/policies/kernel/fourier_prior.hpp>
#include <attune/policies/kernel/relative_bias.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

template <class K>
double score(K const& k, double x) {
  return k.bind(row_with(0)).score(x, key<double>{0});
}

TEST_CASE("bias, key_bias, relative_bias, t5_bias, fourier_prior: the number itself") {
  for (double x : {-2.5, 0.0, -inf}) {
    CHECK(score(kernel::bias{}, x) == x);
    CHECK(score(kernel::key_bias{}, x) == x);
    CHECK(score(kernel::relative_bias{}, x) == x);
    CHECK(score(kernel::t5_bias{}, x) == x);
    CHECK(score(kernel::fourier_prior{}, x) == x);
  }
}

TEST_CASE("log_prior: the logarithm; a prior of 0 switches the key off") {
  CHECK(near(score(kernel::log_prior{}, 0.5), -ln2));
  CHECK(score(kernel::log_prior{}, 1) == 0);
  CHECK(score(kernel::log_prior{}, 0) == -inf);
  CHECK(std::isnan(score(kernel::log_prior{}, -1)));
}

TEST_CASE("relative_bias: distances are clamped to the table") {
  std::vector<double> const x(5);
  kernel::relative_bias const k{tensor<double const>(x, shape{1, 1, 5, 1})};  // M = 2
  index_t const wanted[] = {0, 0, 1, 2, 3, 4, 4};
  for (index_t n = -3; n <= 3; ++n) CHECK(k.index(n) == wanted[n + 3]);
  CHECK(k.index(1000000) == 4);
}

TEST_CASE("t5_bias: the buckets of T5, 32 of them up to distance 128") {
  std::vector<double> const x(32);
  kernel::t5_bias const both{tensor<double const>(x, shape{1, 1, 32, 1}), 128, true};
  kernel::t5_bias const causal{tensor<double const>(x, shape{1, 1, 32, 1}), 128, false};
  // key behind the query: 16 buckets, 8 of them exact
  for (index_t n = 0; n < 8; ++n) CHECK(both.index(n) == n);
  CHECK(both.index(8) == 8);    // 8 + floor(0)
  CHECK(both.index(11) == 8);   // log(11/8) / log(16) * 8 = 0.92
  CHECK(both.index(12) == 9);   // 1.17
  CHECK(both.index(32) == 12);  // 8 + 4
  CHECK(both.index(127) == 15);
  CHECK(both.index(128) == 15);
  CHECK(both.index(100000) == 15);
  // ahead of it: the same 16, after the first 16
  for (index_t n : {1, 7, 11, 12, 32, 100000}) CHECK(both.index(-n) == 16 + both.index(n));
  // causal: all 32 look back, 16 exact; what is ahead counts as distance 0
  for (index_t n = 0; n < 16; ++n) CHECK(causal.index(n) == n);
  CHECK(causal.index(16) == 16);
  CHECK(causal.index(32) == 21);  // 16 + floor(log(2) / log(8) * 16) = 16 + 5
  CHECK(causal.index(128) == 31);
  CHECK(causal.index(-3) == 0);
}

}  // namespace
}  // namespace attune::test
