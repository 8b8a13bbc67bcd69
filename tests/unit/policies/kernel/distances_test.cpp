// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// From the value of a contraction to a score: kernels of distances, scalars, metrics, and of the user's own feature
// sums.
#include <attune/policies/kernel/dot_product.hpp>
#include <attune/policies/kernel/elementwise.hpp>
#include <attune/policies/kernel/elliptical.hpp>
#include <attune/policies/kernel/inverse_distance.hpp>
#include <attune/policies/kernel/rbf.hpp>
#include <attune/policies/kernel/scalar.hpp>
#include <attune/policies/kernel/scaled_rbf.hpp>
#include <attune/policies/kernel/spatial_prior.hpp>
#include <attune/policies/kernel/transformer_xl.hpp>
#include <attune/policies/kernel/tupe.hpp>

#include "../../check.hpp"
#include "../row.hpp"

namespace attune::test {
namespace {

/// The score of a kernel for the contraction value x; D = 4, so 1 / sqrt(D) = 0.5.
template <class K>
double score(K const& k, double x) {
  return k.bind(row_with(0)).score(x, key<double>{0});
}

TEST_CASE("tempered_dot: <q, k> / tau") {
  CHECK(score(kernel::tempered_dot{4}, 6) == 1.5);
  CHECK(score(kernel::tempered_dot{}, 6) == 6);
}

TEST_CASE("rbf, l2, spatial prior: minus a distance") {
  CHECK(score(kernel::rbf{4}, 6) == -1.5);
  CHECK(score(kernel::rbf{1e-300}, 0) == 0);  // the key itself, at any temperature
  CHECK(score(kernel::rbf{1e-300}, 1e10) == -inf);
  CHECK(score(kernel::l2{}, 6) == -3);  // 1 / sqrt(D)
  CHECK(score(kernel::l2{2}, 6) == -12);
  CHECK(score(kernel::spatial_prior{4}, 6) == -1.5);
  for (auto x : {score(kernel::rbf{}, nan), score(kernel::l2{}, nan), score(kernel::spatial_prior{}, nan)})
    CHECK(std::isnan(x));
}

TEST_CASE("inverse_distance: -log(eps + distance)") {
  CHECK(near(score(kernel::inverse_distance{0.5}, 1.5), -ln2));
  CHECK(near(score(kernel::inverse_distance{0.5}, 0), ln2));
  CHECK(score(kernel::inverse_distance{0.5}, inf) == -inf);
}

TEST_CASE("scaled_rbf: gamma sum of k (2 q - k)") {
  CHECK(kernel::scaled_rbf::term::pair(3.0, 2.0) == 8);  // 2 (6 - 2)
  CHECK(score(kernel::scaled_rbf{0.5}, 8) == 4);
  for (double q : {-1.5, 0.0, 4.0})  // the distance up to q^2
    for (double k : {-2.0, 0.5}) CHECK(kernel::scaled_rbf::term::pair(q, k) == q * q - (q - k) * (q - k));
}

TEST_CASE("elliptical, bilinear: a metric inside the contraction, -1/2 and 1 / sqrt(D) outside") {
  CHECK(score(kernel::elliptical{{}, {}}, 8) == -2);
  CHECK(score(kernel::elliptical{{}, 3}, 8) == -12);
  CHECK(score(kernel::bilinear{{}, {}}, 8) == 4);
  CHECK(score(kernel::bilinear{{}, 3}, 8) == 24);
}

TEST_CASE("scalar sort, scalar Laplacian: the same on both sides; difference: antisymmetric") {
  for (double e : {3.0, -3.0}) {
    CHECK(score(kernel::scalar_sort{2}, e) == -4.5);
    CHECK(score(kernel::scalar_laplacian{2}, e) == -1.5);
    CHECK(score(kernel::scalar_difference{}, e) == e);
  }
  CHECK(score(kernel::scalar_sort{1e-300}, 0) == 0);
  CHECK(score(kernel::scalar_laplacian{1e-300}, 0) == 0);
}

TEST_CASE("tupe, transformer_xl: one scale for both halves") {
  for (double s : {score(kernel::tupe_content{}, 4), score(kernel::tupe_position{}, 4)}) CHECK(near(s, std::sqrt(2.0)));
  auto const xl = kernel::transformer_xl({}, {}, {}), scaled = kernel::transformer_xl({}, {}, {}, 3);
  for (double s : {score(xl.first, 4), score(xl.second, 4)}) CHECK(s == 2);
  for (double s : {score(scaled.first, 4), score(scaled.second, 4)}) CHECK(s == 12);
}

struct city_block {
  template <class T>
  static T pair(T const& q, T const& k) {
    return -math::abs(T(q - k));
  }
};

TEST_CASE("elementwise: a scale around a sum of the user's own, 1 by default") {
  using mine = kernel::elementwise<city_block>;
  CHECK(score(mine{}, -6) == -6);
  CHECK(score(mine{0.5}, -6) == -3);
  CHECK(KernelPolicy<mine>);
  CHECK(contraction::is_known<mine::contraction>);
}

}  // namespace
}  // namespace attune::test
