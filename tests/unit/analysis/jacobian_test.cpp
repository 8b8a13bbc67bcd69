// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Jacobians of the normalizers, norms, entropic programs, kernels, grouping, length laws.
#include <cmath>

#include <unit/check.hpp>

#include <attune/analysis/grouping.hpp>
#include <attune/analysis/length_law.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/length_scale/ssmax.hpp>
#include <attune/policies/normalizer/affine.hpp>
#include <attune/policies/normalizer/entmax.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/off_by_one.hpp>
#include <attune/policies/normalizer/self_adjusted.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::error_of;
using attune::test::inf;
using attune::test::ln2;
using attune::test::ln3;
using attune::test::near;

namespace {

using numbers_t = std::vector<double>;

/// 1 + x^2
struct square_plus_one {
  template <class T>
  static T map(T const& x) {
    return T(1) + x * x;
  }
};

}  // namespace

TEST_CASE("softmax: diag(p) - p p^T by the policy's own source") {
  numbers_t const l{0, ln2, ln3};  // p = (1, 2, 3) / 6
  auto const j = jacobian(normalizer::softmax{}, l);
  CHECK(near(j(0, 0), 5.0 / 36));
  CHECK(near(j(0, 1), -2.0 / 36));
  CHECK(near(j(2, 1), -6.0 / 36));
  auto const s = sensitivity_of_softmax(softmax(l), 1.0);
  CHECK(near(s.spectral, spectral_norm(j)));
  CHECK(near(s.largest_entry, largest_entry(j)));
  CHECK(near(s.largest_entry, 0.25));
  CHECK(s.row_bound == 2 * s.largest_entry);
}

TEST_CASE("two equal logits above all others attain 1 / (2 T), where the printed constants fail") {
  for (double const temperature : {1.0, 0.1}) {
    auto const s = sensitivity_of_softmax(softmax(numbers_t{3, 3, -900}, temperature), temperature);
    CHECK(near(s.spectral, 1 / (2 * temperature)));
    CHECK(s.spectral == s.bound);
    CHECK(s.spectral > s.printed);
  }
  CHECK(largest_eigenvalue(numbers_t(1, 1.0)) == 0);
  CHECK(largest_eigenvalue(numbers_t{0, 1, 0}) == 0);
}

TEST_CASE("a row next to one-hot keeps its digits: lambda = 2 p (1 - p) for two keys") {
  double const small = 1e-12;
  CHECK(near(largest_eigenvalue(numbers_t{1 - small, small}), 2 * small * (1 - small)));
  CHECK(near(largest_eigenvalue(numbers_t{1.0 / 3, 1.0 / 3, 1.0 / 3}), 1.0 / 3));
}

TEST_CASE("sparsemax: a projector on its support") {
  auto const j = jacobian(normalizer::sparsemax{}, numbers_t{1, 0.8, -3});
  CHECK(near(j(0, 0), 0.5));
  CHECK(near(j(0, 1), -0.5));
  CHECK(j(2, 2) == 0);
  CHECK(near(spectral_norm(j), 1));  // twice the worst of softmax
  CHECK(spectral_norm(jacobian(normalizer::sparsemax{}, numbers_t{5, 0})) == 0);
}

TEST_CASE("other normalizers: off-by-one, affine, self-adjusted, 1.5-entmax") {
  numbers_t const l{0, ln2};
  auto const one = jacobian(normalizer::off_by_one{}, l);  // w = (1, 2) / 4
  CHECK(near(one(0, 0), 3.0 / 16));
  CHECK(near(one(1, 0), -2.0 / 16));
  normalizer::affine<> affine;
  affine.alpha = 0.5;
  CHECK(near(jacobian(affine, l)(0, 0), 0.5 * 2.0 / 9));
  using product = normalizer::self_adjusted<normalizer::adjusted_form::product>;
  auto const adjusted = jacobian(product{}, l);  // w = l p: dw_1/dl_1 = p_1 + l_1 p_1 (1 - p_1)
  CHECK(near(adjusted(1, 1), 2.0 / 3 + ln2 * 2.0 / 9));
  auto const entmax = jacobian(normalizer::entmax15{}, numbers_t{0, 0});  // y = sqrt w: diag y - y y^T / sum y
  CHECK(near(entmax(0, 0), std::sqrt(0.5) / 2));
}

TEST_CASE("general F: the projector's bound is attained, the printed one is not a bound of the norm") {
  // F(l) = 1 + l^2 at l = (sqrt 63, 0, ...): steep in the one logit that counts.
  numbers_t row(64, 1.0);
  auto const g = general<square_plus_one>(row);
  CHECK(g.total == 128);
  CHECK(near(g.alpha[5], 1.0 / 64));
  CHECK(g.steepest == 2);
  CHECK(near(g.bound(), 2.0 / 128));  // sqrt(L) |alpha| = 1 for equal weights
  auto const j = jacobian(normalizer::generic<square_plus_one>{}, row);
  CHECK(near(spectral_norm(j), g.bound()));
  CHECK(largest_entry(j) <= g.entry_bound());
  CHECK(g.bound() <= g.bound_by_extremes());
  CHECK(error_of([] { general<normalizer::map::relu>(numbers_t{-1}); }) ==
        "attune::analysis::general: F(l) has the value 0; expected a positive number");
}

TEST_CASE("the norm of a matrix: rank one, rotations, more columns than rows") {
  matrix<double> m(1, 2);
  m(0, 0) = 3;
  m(0, 1) = 4;
  CHECK(near(spectral_norm(m), 5));
  matrix<double> shear(2, 2);
  shear(0, 0) = shear(0, 1) = shear(1, 1) = 1;
  CHECK(near(spectral_norm(shear), (1 + std::sqrt(5.0)) / 2));
  CHECK(spectral_norm(matrix<double>(3, 2)) == 0);
}

TEST_CASE("finite differences: at most 1 / (2 T) and sqrt 2 / eps; softmax of a swap comes close to the second") {
  numbers_t const l{5, -5}, swap{-1, 1};
  double const g = finite_difference(normalizer::softmax{}, l, swap, 0.1, 20.0);
  CHECK(g <= finite_difference_bound(0.1, 20.0));
  CHECK(near(g, std::sqrt(2.0) / 20, 1e-12));
  double const tied = finite_difference(normalizer::softmax{}, numbers_t{0, 0}, swap, 1.0, 1e-4);
  CHECK(near(tied, 0.5, 1e-7));
  CHECK(error_of([&] { finite_difference(normalizer::softmax{}, l, numbers_t{0, 0}, 1.0, 1.0); }).find("|direction|") !=
        std::string::npos);
}

TEST_CASE("an entropic program: the gap of its objective is T KL") {
  numbers_t const z{1, 0, -1}, q{0.2, 0.5, 0.3};
  double const t = 0.5;
  auto const p = softmax(z, t);
  CHECK(near(gibbs_objective(p, z, t), potential(z, t)));
  CHECK(near(potential(z, t) - gibbs_objective(q, z, t), t * divergence(q, p)));
  CHECK(divergence(numbers_t{1, 0}, numbers_t{0, 1}) == inf);
  auto const h = potential_hessian(z, t);
  CHECK(near(h(0, 1), -p[0] * p[1] / t));
  CHECK(spectral_norm(h) <= 1 / (2 * t));
}

TEST_CASE("temperature: the largest logits share all, or all keys do") {
  auto const l = limits_of(numbers_t{2, 1, 2, 0});
  CHECK(l.cold == numbers_t{0.5, 0, 0.5, 0});
  CHECK(l.gap == 1);
  CHECK(l.range == 2);
  auto const cold = softmax(numbers_t{2, 1, 2, 0}, 0.05);
  CHECK(cold[1] + cold[3] <= l.cold_bound(0.05));
  auto const hot = softmax(numbers_t{2, 1, 2, 0}, 100.0);
  CHECK(std::fabs(hot[3] - 0.25) <= l.hot_bound(100.0));
  CHECK(limits_of(numbers_t{1, 1}).gap == inf);
  CHECK(limits_of(numbers_t{1, 1}).cold_bound(1.0) == 0);
}

TEST_CASE("keys of equal norm: dot products are a Gaussian kernel, whatever the norm of the query") {
  numbers_t const q{3, 1}, k{2, 0, 0, -2, std::sqrt(2.0), std::sqrt(2.0)};
  points<double> const keys(k, 2);
  double const sigma2 = rbf_bandwidth(0.7, 2);
  auto const a = softmax(dot_scores(q, keys, sigma2)), b = softmax(rbf_scores(q, keys, sigma2));
  for (std::size_t j = 0; j < 3; ++j) CHECK(near(a[j], b[j], 1e-14));
  auto const f = factors_of(q, keys);
  auto const product = product_of_experts(f.similarity, f.magnitude),
             whole = softmax(dot_scores(q, keys, std::sqrt(2.0)));
  for (std::size_t j = 0; j < 3; ++j) CHECK(near(product[j], whole[j], 1e-13));
  CHECK(error_of([] { product_of_experts(numbers_t{1, 0}, numbers_t{0, 1}); }).find("sum p q") != std::string::npos);
}

TEST_CASE("grouping: weights move by half of what is printed, values move outputs too") {
  numbers_t const q{1, 0}, own{0, 0, 0, 0}, shared{0.01, 0, -0.01, 0};  // the worst: two tied logits pulled apart
  auto const g = drift_of_grouping(q, points<double>(own, 2), points<double>(shared, 2), 1.0);
  CHECK(g.drift <= g.by_logits);
  CHECK(near(g.drift, g.by_logits, 1e-4));
  CHECK(near(g.by_logits, g.by_operator));
  CHECK(near(g.operator_norm, std::sqrt(2e-4)));
  numbers_t const v{1, 2}, w{1, 4};
  CHECK(near(output_drift_bound(points<double>(v, 1), points<double>(w, 1), 0.0, 1.0), 2));
}

TEST_CASE("length laws: c log K keeps a gap of 1 / c and nothing else") {
  CHECK(near(leading_weight(length_scale::ssmax{1.0}, 1000, 1.0), 1 / (1 + 999.0 / 1000)));
  CHECK(leading_weight(length_scale::ssmax{1.0}, 1000000, 0.5) < 0.002);
  CHECK(leading_weight(length_scale::ssmax{1.0}, 1000000, 1.5) > 0.998);
  double const c1 = std::log(std::expm1(1.0));  // softplus = 1
  length_scale::margin const margin{.alpha = c1, .gamma = 0};
  CHECK(near(leading_weight(margin, 100, 1.0), 1 / (1 + 99 * std::exp(-1.0) / 100)));
  CHECK(leading_weight(margin, 1, 1.0) == 1);
}
