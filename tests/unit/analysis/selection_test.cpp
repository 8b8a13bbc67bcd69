// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Lemma 1, Corollary 1, Theorems 1 and 2 on rows of two to four keys.
#include <cmath>

#include <unit/check.hpp>

#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::error_of;
using attune::test::inf;
using attune::test::near;

namespace {

using numbers_t = std::vector<double>;

}  // namespace

TEST_CASE("vanishing weights: C1 / L and C2 / L, and what a row of two values of F attains") {
  auto const r = vanishing_weights(1.0, 4.0, 5);
  CHECK(near(r.lower, 0.05));
  CHECK(near(r.upper, 0.8));
  CHECK(near(r.sharp_lower, 1.0 / 17));  // F = (1, 4, 4, 4, 4)
  CHECK(near(r.sharp_upper, 0.5));       // F = (4, 1, 1, 1, 1)
  auto const alone = vanishing_weights(1.0, 4.0, 1);
  CHECK(alone.sharp_lower == 1);
  CHECK(alone.sharp_upper == 1);
  CHECK(error_of([] { vanishing_weights(0.0, 1.0, 2); }) ==
        "attune::analysis::vanishing_weights: least has the value 0; expected a positive number");
  CHECK(error_of([] { vanishing_weights(2.0, 1.0, 2); }).find("greatest has the value 1") != std::string::npos);
}

TEST_CASE("vanishing softmax: Delta is that of the longest key") {
  numbers_t const q(1, 1), k{0.1, 3};
  double const delta = score_bound(q, points<double>(k, 1));
  CHECK(delta == 3);
  auto const r = vanishing_softmax(delta, 0.5, 2);
  CHECK(near(r.lower, std::exp(-12.0) / 2));
  CHECK(near(r.sharp_upper, 1 / (1 + std::exp(-12.0))));
  double const alpha = 1 / (1 + std::exp((3 - 0.1) / 0.5));  // of the short key
  CHECK(alpha >= r.sharp_lower);
  CHECK(alpha < vanishing_softmax(0.1, 0.5, 2).lower);  // with its own norm the printed bound is false
}

TEST_CASE("points: rows of equal width") {
  numbers_t const x{3, 4, 0, 1};
  points<double> const p(x, 2);
  CHECK(p.count() == 2);
  CHECK(norm(p[0]) == 5);
  CHECK(near(distance(p[0], p[1]), std::sqrt(18.0)));
  CHECK(error_of([&] { points<double>(x, 3); }) ==
        "attune::analysis::points: width has the value 3; expected a positive divisor of the 4 numbers");
}

TEST_CASE("largest weights: descending, ties to the lower index") {
  CHECK(largest(numbers_t{1, 3, 2, 3}, 3) == std::vector<index_t>{1, 3, 2});
  CHECK(largest(numbers_t{1, 1}, 0).empty());
  CHECK(error_of([] { largest(numbers_t{1, 1}, 3); }) ==
        "attune::analysis::largest: n has the value 3; expected a value from 0 to 2");
}

TEST_CASE("the distance of a fixed set and its bound: attained, and too small for weights that do not sum to 1") {
  // y = (0.1, -0.05, -0.05), s = 0.1: d~ = 0.15 + 0.15; d1 = 2, longest 1, L - N = 2.
  numbers_t const alpha{0.1, 0.05, 0.05}, x{1, -1, -1};
  auto const b = bound_fixed_set(alpha, points<double>(x, 1), 1);
  CHECK(near(b.chosen.distance, 0.3));
  CHECK(near(b.bound, 0.1 * 2 + (0.1 * 2 - 0.1)));  // = d~
  CHECK(near(b.printed, 0.9 * 2 + (0.1 * 2 - 0.9)));
  CHECK(b.chosen.rest == std::vector<index_t>{1, 2});
  CHECK(error_of([&] { select(points<double>(x, 1), {0, 0}); }) ==
        "attune::analysis::select: chosen has the key 0 twice; expected distinct keys");
}

TEST_CASE("a random set of identical keys: the corrected main term is exact, the printed one is not") {
  numbers_t const alpha(4, 0.25), x(4, 1.0);
  points<double> const keys(x, 1);
  auto const one = bound_random_set(alpha, keys, 1);
  CHECK(expected_distance(alpha, keys, 1) == 0);
  CHECK(near(one.lower, 0, 1e-15));
  CHECK(one.upper == 0);
  CHECK(one.gap == inf);
  CHECK(near(one.printed, 0.75 * 4 * (1 - 0.25 - 1.0 / 3)));  // 1.25
  auto const two = bound_random_set(alpha, keys, 2);
  CHECK(near(expected_distance(alpha, keys, 2), 0.5));
  CHECK(near(two.lower, 0.5));
  CHECK(near(two.upper, 0.5));
}

TEST_CASE("a random set of two keys: E is the distance, whoever is drawn") {
  numbers_t const alpha{0.75, 0.25}, x{1, 0, 0, 1};
  points<double> const keys(x, 2);
  double const e = expected_distance(alpha, keys, 1);
  CHECK(near(e, std::sqrt(0.625)));
  auto const b = bound_random_set(alpha, keys, 1);
  CHECK(near(b.lower, e));
  CHECK(near(b.upper, e));
}

TEST_CASE("long rows: identical keys and opposite keys") {
  numbers_t const alpha(1000, 1e-3), same(1000, 2.0);
  auto const r = distance_of_long_rows(alpha, points<double>(same, 1), 5);
  CHECK(near(r.lower, 8, 1e-12));
  CHECK(near(r.upper, 8, 1e-12));
  CHECK(near(r.printed, 2, 1e-12));  // what Corollary 2 (i) says
  numbers_t const pairs{1, -1, 1, -1, 1, -1};
  auto const opposite = distance_of_long_rows(numbers_t(6, 1.0 / 6), points<double>(pairs, 1), 5);
  CHECK(near(opposite.upper, std::sqrt(6.0)));
}

TEST_CASE("separable keys: the closed ball of the paper holds a key that was not selected") {
  numbers_t const y{0.5, 0.3, 0.1};  // s = 0.8 for the first two: 0.3, 0.5 and 0.7 away
  auto const s = select(points<double>(y, 1), {0, 1});
  double const r = separation_radius(s);
  CHECK(near(r, 0.7));
  CHECK(separable(s, r, ball::open) == 2);
  CHECK(separable(s, s.chosen_distance[1], ball::open) == 1);
  CHECK(separable(s, s.chosen_distance[1]) == 2);
  auto const all = select(points<double>(y, 1), {0, 1, 2});
  CHECK(separation_radius(all) == inf);
}

TEST_CASE("Theorem 2: xi, the lower bound, the two upper ones") {
  // Two keys of weight 1/2: xi = 1/2 each, whatever delta. Alone with the other one, |y_i - s| = 1/2 exactly.
  auto const b = bound_separability(numbers_t{0.5, 0.5}, sphere<double>{1, 1.2, 3}, 0.25);
  CHECK(b.spread == numbers_t{0.5, 0.5});
  CHECK(near(b.lower, 1 - 1 / (0.25 * 2)));
  CHECK(near(b.upper, std::exp(-0.0625 / 0.5)));
  CHECK(near(b.printed, std::exp(-0.0625 / 16)));
  // r above every distance: all keys are inside, and the printed upper bound says almost none.
  auto const wide = bound_separability(numbers_t{0.5, 0.5}, sphere<double>{1, 1.2, 3}, 10.0);
  CHECK(wide.upper == 1);
  CHECK(wide.printed < 0.01);
  // Ordered pairs: three keys, xi_1^2 = A + (1 - delta^2 / 2) (S^2 - A).
  auto const three = bound_separability(numbers_t{0.5, 0.3, 0.2}, sphere<double>{1, 1, 3}, 1.0);
  CHECK(near(three.spread[0], std::sqrt(0.13 + 0.5 * 0.12)));
  auto const alone = bound_separability(numbers_t(1, 1.0), sphere<double>{1, 1, 3}, 0.1);
  CHECK(alone.upper == 1);
  CHECK(alone.lower == 1);
  CHECK(error_of([] {
          bound_separability(numbers_t(1, 1.0), sphere<double>{1, 1, 3}, 0.0);
        }).find("r has the value 0") != std::string::npos);
}
