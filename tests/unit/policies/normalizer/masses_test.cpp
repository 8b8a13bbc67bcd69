// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Normalizers whose masses are not plain e^(a - m), or whose weights get something beside them: hooks by hand.
#include <attune/core/dual.hpp>
#include <attune/policies/normalizer/affine.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/self_adjusted.hpp>
#include <attune/policies/normalizer/sigmoid.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

row<double> const plain = row_with(0), shifted = row_with(0, 0, 5);  // row constant 5

TEST_CASE("affine: alpha times softmax, and a share of (average - alpha) / N for every visible key") {
  row<double> r = plain;
  r.keys = 10;
  auto const visible = normalizer::affine<normalizer::affine_count::visible>{0.75, 0.5}.bind(r);
  CHECK(visible.weight_factor() == 0.75);
  CHECK(visible.uniform_share(123.0, 4.0) == -0.0625);  // weights may be negative
  CHECK(visible.earned(3.0, 3.0) == 1);
  CHECK(near(visible.earned(3 - ln2, 3.0), 0.5));
  auto const total = normalizer::affine<normalizer::affine_count::total>{0.75, 0.5}.bind(r);
  CHECK(total.uniform_share(123.0, 4.0) == -0.025);
  CHECK(normalizer::affine<>{}.bind(r).uniform_share(1.0, 4.0) == 0);  // alpha = average = 1: softmax
  CHECK(normalizer::affine<>{}.bind(r).weight_factor() == 1);
}

TEST_CASE("free affine: a share of beta / N") {
  row<double> r = plain;
  r.keys = 10;
  CHECK(normalizer::free_affine<>{0.75, 2}.bind(r).uniform_share(123.0, 4.0) == 0.5);
  CHECK(normalizer::free_affine<normalizer::affine_count::total>{0.75, 2}.bind(r).uniform_share(123.0, 4.0) == 0.2);
  CHECK(normalizer::free_affine<>{0.75, 2}.bind(r).weight_factor() == 0.75);
}

TEST_CASE("sigmoid: sigma(a + b), b = -log K where it was not set, at the true logit") {
  auto const f = normalizer::sigmoid{ln3}.bind(plain);
  CHECK(near(f.earned(0.0, 99.0), 0.75));
  CHECK(near(f.earned(-2 * ln3, 99.0), 0.25));
  CHECK(f.earned(inf, 0.0) == 1);
  CHECK(f.earned(-inf, 0.0) == 0);
  CHECK(std::isnan(f.earned(nan, 0.0)));
  CHECK(near(normalizer::sigmoid{}.bind(row_with(ln3)).earned(0.0, 0.0), 0.25));  // 1 / (1 + K)
  CHECK(near(normalizer::sigmoid{ln3}.bind(shifted).earned(-5.0, 0.0), 0.75));    // logits arrive without the constant
  CHECK(near(normalizer::sigmoid{}.bind(row_with(ln3, 0, 5)).earned(-5.0, 0.0), 0.25));
}

TEST_CASE("generic: F of the true logit") {
  CHECK(near(normalizer::exponential{}.bind(plain).earned(ln3, 99.0), 3));
  CHECK(near(normalizer::exponential{}.bind(shifted).earned(ln3 - 5, 99.0), 3));
  CHECK(normalizer::exponential{}.bind(plain).earned(-inf, 0.0) == 0);
  for (auto const& f : {normalizer::relu{}.bind(plain)}) {
    CHECK(f.earned(2.5, 0.0) == 2.5);
    CHECK(f.earned(-2.5, 0.0) == 0);
    CHECK(f.earned(-inf, 0.0) == 0);
    CHECK(std::isnan(f.earned(nan, 0.0)));
  }
  CHECK(normalizer::mean_relu::traits.divided_by == divisor::count);
  CHECK(normalizer::normalized_relu::traits.divided_by == divisor::sum);
  CHECK(normalizer::relu::traits.divided_by == divisor::one);
}

TEST_CASE("relu: derivative 0 at the tie") {
  auto const slope = [](double a) { return normalizer::map::relu::map(dual<double, 1>::variable(a, 0)).tangent[0]; };
  CHECK(slope(0) == 0);
  CHECK(slope(1e-300) == 1);
  CHECK(slope(-1e-300) == 0);
}

TEST_CASE("centered: what all masses have on average is taken from every key") {
  auto const f = normalizer::centered_relu{}.bind(plain);
  CHECK(f.earned(2.0, 0.0) == 2);
  CHECK(f.earned(-2.0, 0.0) == 0);
  CHECK(f.uniform_share(8.0, 4.0) == -0.5);  // mean 2, over K
}

TEST_CASE("self-adjusted: the ends between which a logit has its place") {
  using normalizer::adjusted_form;
  auto const is = [](adjustment<double> const& e, double low, double high) {
    CHECK(e.low == low);
    CHECK(e.high == high);
  };
  normalizer::self_adjusted<adjusted_form::product> const product;
  normalizer::self_adjusted<adjusted_form::with_zero> const with_zero;
  normalizer::self_adjusted<adjusted_form::full_range> const full;
  is(product.bind(plain).ends(-2, 7), 0, 1);
  is(with_zero.bind(plain).ends(-2, 7), -2, 7);
  is(with_zero.bind(plain).ends(2, 7), 0, 7);
  is(with_zero.bind(plain).ends(-7, -2), -7, 0);
  is(full.bind(plain).ends(2, 7), 2, 7);
  // Logits arrive without the row constant 5; 0 and 1 are those of the true ones.
  is(product.bind(shifted).ends(-2, 7), -5, -4);
  is(with_zero.bind(shifted).ends(-2, 7), -5, 7);
  is(full.bind(shifted).ends(2, 7), 2, 7);
  using detached = normalizer::self_adjusted<adjusted_form::full_range, normalizer::adjusted_ends::detached>;
  CHECK(detached::traits.detached_ends);
  CHECK_FALSE(decltype(full)::traits.detached_ends);
}

}  // namespace
}  // namespace attune::test
