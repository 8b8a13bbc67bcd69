// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every bound of docs/reference/analysis.md at the case where it is attained, or in the limit where it is: no smaller number
// would do.
#include <cmath>

#include <unit/check.hpp>

#include <attune/analysis/grouping.hpp>
#include <attune/analysis/heads.hpp>
#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/policies/normalizer/generic.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::ln2;
using attune::test::near;

namespace {

using numbers_t = std::vector<double>;

/// 2 + l / 2: in [1, 3] for logits in [-2, 2].
struct line {
  template <class T>
  static T map(T const& x) {
    return T(2) + x / T(2);
  }
};

}  // namespace

TEST_CASE("Lemma 1: one logit at one end of F, all others at the other") {
  auto const r = vanishing_weights(1.0, 3.0, 6);
  CHECK(near(general<line>(numbers_t{-2, 2, 2, 2, 2, 2}).alpha[0], r.sharp_lower));
  CHECK(near(general<line>(numbers_t{2, -2, -2, -2, -2, -2}).alpha[0], r.sharp_upper));
}

TEST_CASE("Corollary 1: keys of one length, along the query and against it") {
  numbers_t const q{0, 2}, with{0, 3, 0, -3, 0, -3}, against{0, -3, 0, 3, 0, 3};
  points<double> const k(with, 2), opposite(against, 2);
  auto const r = vanishing_softmax(score_bound(q, k), 4.0, 3);
  CHECK(near(softmax(dot_scores(q, k, 1.0), 4.0)[0], r.sharp_upper, 1e-13));
  CHECK(near(softmax(dot_scores(q, opposite, 1.0), 4.0)[0], r.sharp_lower, 1e-13));
}

TEST_CASE("Theorem 1, fixed set: keys opposite the selected one, whatever their number") {
  for (index_t const rest : {1, 2, 9}) {
    numbers_t alpha(1, 0.5), x(1, 1);
    for (index_t i = 0; i < rest; ++i) alpha.push_back(0.5 / double(rest)), x.push_back(-1);
    auto const b = bound_fixed_set(alpha, points<double>(x, 1), 1);
    CHECK(near(b.chosen.distance, b.bound));
    CHECK(near(b.printed, b.bound));  // these weights sum to 1
  }
}

TEST_CASE("Theorem 1, random set: identical keys at every N attain both sides") {
  numbers_t const alpha(7, 1.0 / 7), x(7, 3.0);
  points<double> const keys(x, 1);
  for (index_t n = 1; n < 7; ++n) {
    auto const b = bound_random_set(alpha, keys, n);
    double const e = expected_distance(alpha, keys, n);
    CHECK(std::fabs(b.lower - e) <= 1e-13);  // n = 1: both are 0
    CHECK(std::fabs(b.upper - e) <= 1e-13);
  }
}

TEST_CASE("Theorem 2: xi is the distance itself for two keys, and for equal keys") {
  numbers_t const w{0.6, 0.4}, x{1, 0, 0, 1};
  points<double> const keys(x, 2);
  numbers_t const y = weighted(w, keys);
  auto const s = select(points<double>(y, 2), {0, 1});
  auto const b = bound_separability(w, sphere<double>{1, least_distance(keys), 2}, 1.0);
  CHECK(near(s.chosen_distance[0], b.spread[0]));
  CHECK(near(s.chosen_distance[1], b.spread[1]));
  numbers_t const same(6, 1.0), even(6, 1.0 / 6);
  auto const all = select(points<double>(even, 1), {0, 1, 2, 3, 4, 5});
  CHECK(near(all.chosen_distance[0], bound_separability(even, sphere<double>{1, 0, 1}, 1.0).spread[0]));
  // Lower bound: with r = 5/6, every distance, the open ball is empty and Markov's inequality says 1 - 1.
  CHECK(std::fabs(bound_separability(even, sphere<double>{1, 0, 1}, 5.0 / 6).lower) <= 1e-13);
  CHECK(separable(all, 5.0 / 6 - 1e-12, ball::open) == 0);
}

TEST_CASE(
    "Jacobians: a tie attains 1 / (2 T), 1 / (4 T) and Gershgorin's row at once; equal weights attain both bounds for "
    "F") {
  double const t = 0.25;
  auto const s = sensitivity_of_softmax(softmax(numbers_t{1, 1}, t), t);
  CHECK(near(s.spectral, 1 / (2 * t)));
  CHECK(near(s.largest_entry, 1 / (4 * t)));
  CHECK(s.spectral == s.row_bound);
  CHECK(near(spectral_norm(potential_hessian(numbers_t{1, 1}, t)), 1 / (2 * t)));
  auto const g = general<line>(numbers_t(5, 1.0));
  CHECK(near(spectral_norm(jacobian(normalizer::generic<line>{}, numbers_t(5, 1.0))), g.bound()));
  CHECK(near(g.bound(), g.bound_by_extremes()));
}

TEST_CASE("finite differences: both bounds, each where it is the smaller one") {
  numbers_t const swap{-1, 1};
  CHECK(near(finite_difference(normalizer::softmax{}, numbers_t{0, 0}, swap, 0.1, 1e-4),
             finite_difference_bound(0.1, 1e-4), 1e-6));
  CHECK(near(finite_difference(normalizer::softmax{}, numbers_t{50, -50}, swap, 1.0, 200.0),
             finite_difference_bound(1.0, 200.0), 1e-12));
}

TEST_CASE("the potential: one key attains the lower end, equal logits the upper") {
  CHECK(near(potential(numbers_t(1, 3.5), 0.7), 3.5));
  CHECK(near(potential(numbers_t(9, 3.5), 0.7), 3.5 + 0.7 * std::log(9.0)));
  CHECK(near(potential(numbers_t{3.5, -800}, 0.7), 3.5));
}

TEST_CASE("temperature limits: the rates are attained in the limit") {
  numbers_t const z{2, 2, 1, 1, 1};
  double const cold = 0.02, off = 3 * softmax(z, cold)[2];
  CHECK(near(off / limits_of(z).cold_bound(cold), 1, 1e-12));
  numbers_t high(1000, 0.0);
  high[0] = 1;
  double const hot = 1000, away = softmax(high, hot)[0] - 1e-3;
  CHECK(away <= limits_of(high).hot_bound(hot));
  CHECK(away >= 0.998 * limits_of(high).hot_bound(hot));
}

TEST_CASE("grouping: a tie pulled apart, and values that alone differ") {
  numbers_t const q(1, 1), own{0, 0}, shared{1e-5, -1e-5};
  auto const g = drift_of_grouping(q, points<double>(own, 1), points<double>(shared, 1), 2.0);
  CHECK(near(g.drift, g.by_logits, 1e-9));
  CHECK(near(g.by_logits, g.by_operator));
  // Values (1, 1) against (4, 4), weights (1/2, 1/2): outputs 1 and 4; |V_g - V_h| |p| = sqrt 18 sqrt(1/2).
  numbers_t const v{1, 1}, w{4, 4};
  CHECK(near(output_drift_bound(points<double>(v, 1), points<double>(w, 1), 0.0, std::sqrt(0.5)), 3));
}

TEST_CASE("rows and heads: uniform rows, one key, disjoint heads, one head") {
  CHECK(near(shape_of(numbers_t(8, 0.125)).effective_keys, 8));
  CHECK(shape_of(numbers_t{0, 1}).effective_keys == 1);
  CHECK(near(jensen_shannon(numbers_t{1, 0}, numbers_t{0, 1}), ln2));
  CHECK(near(head_coverage(0.3, 1), 0.3));
}
