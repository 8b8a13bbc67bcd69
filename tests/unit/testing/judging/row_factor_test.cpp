// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel that normalizes rows by an lse is right if the lse has 32 bits.
#include <cmath>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/drawn_problem.hpp>
#include <attune/testing/judging/row_factor.hpp>
#include <attune/testing/verdict.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using certify::precision;
using certify::storage;
using testing::judgement;
using testing::verdict_options;
using testing::verdict_report;

using op_type = decltype(softmax_attention(mask::causal{}));
using drawn = testing::drawn_problem<op_type>;

/// e^(s - lse) v in float, with an lse that is rounded to a format. Logits have a standard deviation of `size`.
verdict_report judged(double size, storage lse_format, double lse_roundings) {
  testing::detail::normal_numbers random(5);
  drawn const p(
      {.heads = 2, .queries = 48, .keys = 48, .width = 16, .value_width = 16, .key_heads = 2, .value_heads = 2}, random,
      [&](field f, double x) { return f == field::q ? size * x : x; });
  auto const& q = p.of(field::q);
  auto const& k = p.of(field::k);
  auto const& v = p.of(field::v);
  index_t const H = 2, L = 48, D = 16;
  std::vector<float> out, lses;
  for (index_t h = 0; h < H; ++h)
    for (index_t i = 0; i < L; ++i) {
      auto const at = [&](testing::detail::drawn_tensor const& x, index_t n, index_t c) {
        return x.floats[std::size_t((h * L + n) * D + c)];
      };
      std::vector<float> s;
      float top = -INFINITY, sum = 0;
      for (index_t j = 0; j <= i; ++j) {
        float x = 0;
        for (index_t c = 0; c < D; ++c) x += at(q, i, c) * at(k, j, c);
        s.push_back(x / 4);
        top = std::fmax(top, s.back());
      }
      for (float x : s) sum += std::exp(x - top);
      lses.push_back(top + std::log(sum));
      float const lse = float(certify::rounded_to(lse_format, lses.back()));
      for (index_t c = 0; c < D; ++c) {
        float x = 0;
        for (index_t j = 0; j <= i; ++j) x += std::exp(s[std::size_t(j)] - lse) * at(v, j, c);
        out.push_back(x);
      }
    }
  verdict_options how;
  how.lse_roundings = lse_roundings;
  testing::candidate given(tensor<float const>(out, {1, H, L, D}));
  given.with_lse(natural_lse(tensor<float const>(lses, {1, H, L, 1})));
  return testing::verdict(softmax_attention(mask::causal{}), p.inputs<any_tensor>(), given, how);
}

}  // namespace

TEST_SUITE_BEGIN("verdict");

TEST_CASE("row factor: a kernel that normalizes by an lse of 32 bits passes") {
  for (double size : {0.3, 3., 20., 60.}) CHECK(judged(size, storage::fp32, 8).decision == judgement::pass);
  CHECK(judged(60, storage::fp32, 0).decision ==
        judgement::fail);  // a kernel that divides by the sum has smaller errors
}

TEST_CASE("row factor: an lse of 16 bits fails") {
  for (double size : {0.3, 3., 60.})
    for (storage s : {storage::bf16, storage::fp16}) CHECK(judged(size, s, 8).decision == judgement::fail);
}

TEST_CASE("row factor: what it explains of the squares") {
  // (1, 2) in the inverse of 1 + 0.25 (3, 4)^T (3, 4) = [3.25 3; 3 5], determinant 7.25.
  testing::detail::factor_fit fit;
  fit.add(1, 3);
  fit.add(2, 4);
  CHECK(near(1 + 4 - fit.explained(0.5), (5 * 1 - 2 * 3 * 2 + 3.25 * 4) / 7.25));
  CHECK(fit.explained(0) == 0);
}

TEST_CASE("row factor: it is the same for all features of a row") {
  precision how;
  how.lse_roundings = 8;
  testing::detail::row_factors const factors({{9, 0, 0, 0}, {-inf, 0, 0, 0}}, how);
  CHECK(factors.deviation(0) == 10 * 0x1p-24);
  CHECK(factors.deviation(1) == 0);
  CHECK(testing::detail::row_factors().deviation(7) == 0);
  CHECK(near(factors.with_factor({2, 0, 0, 0}, 0, 16).scatter, 4 * 20 * 0x1p-24));
  CHECK(near(factors.with_factor({2, 0, 0, 30 * 0x1p-24}, 0, 16).scatter, 4 * std::hypot(30, 20) * 0x1p-24));
  how.out = storage::bf16;
  testing::detail::row_factors const narrow({{9, 0, 0, 0}}, how);
  CHECK(near(narrow.with_factor({2, 0, 0, 0.25}, 0, 16).scatter, std::hypot(0.25, 4 * 20 * 0x1p-24)));
}

TEST_SUITE_END();

}  // namespace attune::test
