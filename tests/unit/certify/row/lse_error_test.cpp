// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The error of an lse enters a bound only if the precision says so, and then by its size.
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/certify/error_bound.hpp>
#include <attune/certify/row/lse_error.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using certify::precision;
using certify::storage;

certify::error_bounds bounds(std::vector<float> const& k, std::vector<float> const& v, double roundings) {
  static std::vector<float> const q{100};
  shape const e{1, 1, index_t(k.size()), 1};
  precision how;
  how.lse_roundings = roundings;
  return certify::error_bound(
      softmax_attention(),
      {.q = tensor<float const>(q, {1, 1, 1, 1}), .k = tensor<float const>(k, e), .v = tensor<float const>(v, e)}, how);
}

}  // namespace

TEST_CASE("lse error: the bound of attune's executors has none") { CHECK(precision().lse_roundings == 0); }

TEST_CASE("lse error: a row of one key moves by the factor and by a difference that cancels") {
  double const unit = 0x1p-24;
  auto const plain = bounds({2}, {-3}, 0), loose = bounds({2}, {-3}, 5);
  double const lse = plain.at_lse(0, 0, 0).value;
  CHECK(lse == 200);
  CHECK(near(loose.at_out(0, 0, 0, 0).bound - plain.at_out(0, 0, 0, 0).bound, 5 * unit * ((1 + lse) * 3 + 3), 1e-9));
  CHECK(loose.at_out(0, 0, 0, 0).drift == plain.at_out(0, 0, 0, 0).drift);
  CHECK(near(loose.at_out(0, 0, 0, 0).scatter, unit * 3));
  CHECK(near(loose.at_lse(0, 0, 0).bound - plain.at_lse(0, 0, 0).bound, 5 * unit * (1 + lse), 1e-9));
  CHECK(near(loose.at_lse(0, 0, 0).scatter, unit * (1 + lse)));
}

TEST_CASE("lse error: parts of a row have an lse each") {
  double const unit = 0x1p-24;
  auto const plain = bounds({2, 2}, {1, 4}, 0), loose = bounds({2, 2}, {1, 4}, 1);
  double const lse = plain.at_lse(0, 0, 0).value;
  CHECK(near(loose.at_out(0, 0, 0, 0).bound - plain.at_out(0, 0, 0, 0).bound, unit * ((1 + lse) * (2.5 + 1.5) + 4),
             1e-9));
}

TEST_CASE("lse error: 16 bits count as fp32, and a row without keys has none") {
  precision how(storage::bf16, storage::bf16, storage::bf16);
  how.lse_roundings = 1;
  CHECK(certify::detail::error_of_lse(how, 7) == 8 * 0x1p-24);
  how.arithmetic = storage::fp64;
  CHECK(certify::detail::error_of_lse(how, 7) == 8 * 0x1p-53);
  CHECK(certify::detail::error_of_lse(how, -inf) == 0);
  CHECK(certify::detail::deviation_of_lse(precision(), 7) == 0);
}

}  // namespace attune::test
