// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Limitations of Normalization: weights, distances, geometry.
#include <attune/analysis/heads.hpp>
#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/similarity.hpp>
#include <attune/policies/normalizer/entmax.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using points = analysis::points<double>;

/// e^sin(x) + 0.1
struct wave {
  template <class T>
  static T map(T const& x) {
    return attune::math::exp(attune::math::sin(x)) + T(0.1);
  }
};

/// Keys around a centre, weights of any concentration.
struct instance {
  numbers alpha, x;
  index_t width;
};
instance random_instance(rng& draw, index_t least, index_t most) {
  index_t const n = draw.between(least, most), d = 3;
  instance i{softmax(draw.normals(n, draw.uniform(0.1, 3))), draw.normals(n * d), d};
  numbers const centre = draw.normals(d, draw.uniform(0, 5));
  for (std::size_t k = 0; k < i.x.size(); ++k) i.x[k] += centre[k % std::size_t(d)];
  return i;
}

void lemma1(evidence& e) {
  e.on_random("F = e^sin + 0.1 on [-2, 2]: C1 / L <= alpha <= C2 / L", [](rng& draw) {
    double const least = std::exp(-1.0) + 0.1, greatest = std::exp(1.0) + 0.1;
    numbers const l = draw.uniforms(draw.between(1, 60), -2, 2);
    auto const r = analysis::vanishing_weights(least, greatest, index_t(l.size()));
    for (double w : analysis::general<wave>(l).alpha)
      if (!at_most(r.lower, w) || !at_most(w, r.upper) || !at_most(r.sharp_lower, w) || !at_most(w, r.sharp_upper))
        return false;
    return true;
  });
  numbers l(1000, 0.0);
  l[0] = 2;
  double const w = analysis::weights(attune::normalizer::sparsemax{}, l)[0];
  e.refute(w == 1, "a normalizer of another form: sparsemax of (2, 0, ..., 0), L = 1000, has a weight of ", w);
}

void corollary1(evidence& e) {
  e.on_random("with Delta = |q| max |k_j|, and the sharper 1 / (1 + (L - 1) e^(+-2 Delta / T))", [](rng& draw) {
    index_t const n = draw.between(2, 30);
    numbers const q = draw.normals(3), k = draw.normals(3 * n);
    points const keys(k, 3);
    double const t = draw.uniform(0.2, 3);
    auto const r = analysis::vanishing_softmax(analysis::score_bound(q, keys), t, n);
    for (double w : softmax(analysis::dot_scores(q, keys, 1.0), t))
      if (w < r.sharp_lower * (1 - 1e-12) || w > r.sharp_upper * (1 + 1e-12) || r.sharp_lower < r.lower * (1 - 1e-12) ||
          r.sharp_upper > r.upper * (1 + 1e-12))
        return false;
    return true;
  });
  double const w = softmax(numbers{0.1, 3}, 0.5)[0], printed = std::exp(-2 * 0.1 / 0.5) / 2;
  e.refute(w < printed, "with the norm of one key: q = 1, k = (0.1, 3), T = 0.5: alpha_1 = ", w, " < ", printed);
}

void fixed_set(evidence& e) {
  e.on_random("N largest weights of sum 1", [](rng& draw) {
    instance const i = random_instance(draw, 3, 20);
    auto const b = analysis::bound_fixed_set(i.alpha, points(i.x, 3), draw.between(1, index_t(i.alpha.size()) - 1));
    return at_most(b.chosen.distance, b.printed);
  });
  numbers const alpha{0.98, 0.01, 0.01}, x{1, 0, 0.01, 0, 0.01, 0};
  numbers const y = analysis::weighted(alpha, points(x, 2));
  double const d = analysis::select(points(y, 2), {1}).distance, d1 = 0.99,
               bound = 0.99 * d1 + 0.01 * (0.01 * 2 - 0.99);
  e.refute(d > bound, "a set that is not the largest: alpha = (0.98, 0.01, 0.01), I = {2}: d~ = ", d, " > ", bound);
  e.on_random("weights of a sum below 1, with 1 - abar replaced by the mass of the rest", [](rng& draw) {
    instance i = random_instance(draw, 3, 20);
    double const factor = draw.uniform(0.01, 1);
    for (double& w : i.alpha) w *= factor;
    auto const b = analysis::bound_fixed_set(i.alpha, points(i.x, 3), draw.between(1, index_t(i.alpha.size()) - 1));
    return at_most(b.chosen.distance, b.bound);
  });
}

void random_set(evidence& e) {
  numbers const quarter(4, 0.25), same{1, 0, 1, 0, 1, 0, 1, 0};
  points const keys(same, 2);
  auto const b = analysis::bound_random_set(quarter, keys, 1);
  double const exact = analysis::expected_distance(quarter, keys, 1);
  e.refute(close(b.printed, 1.25) && exact < 1e-15, "L = 4, N = 1, all x = (1, 0): E = ", exact, ", printed main term ",
           b.printed, " (epsilon would be negative)");
  int below = 0, above = 0;
  for (int n = 0; n < 600; ++n) {
    rng draw{std::uint64_t(n) + 5000};
    instance const i = random_instance(draw, 4, 8);
    index_t const chosen = draw.between(1, index_t(i.alpha.size()) - 1);
    double const expected = analysis::expected_distance(i.alpha, points(i.x, 3), chosen);
    auto const bounds = analysis::bound_random_set(i.alpha, points(i.x, 3), chosen);
    if (expected < bounds.printed - 1e-9) ++below;
    if (expected > bounds.printed + bounds.gap + 1e-9) ++above;
  }
  e.refute(below > 0 && above > 0, "in 600 random cases E is below the printed main term in ", below,
           " and above main term plus epsilon in ", above);
  e.on_random("corrected main term <= E, by enumeration", [](rng& draw) {
    instance const i = random_instance(draw, 2, 8);
    index_t const chosen = draw.between(1, index_t(i.alpha.size()) - 1);
    return at_most(analysis::bound_random_set(i.alpha, points(i.x, 3), chosen).lower,
                   analysis::expected_distance(i.alpha, points(i.x, 3), chosen));
  });
}

void epsilon(evidence& e) {
  e.on_random("corrected main <= E <= the variance form <= corrected main + epsilon", [](rng& draw) {
    instance const i = random_instance(draw, 2, 8);
    points const x(i.x, 3);
    index_t const chosen = draw.between(1, index_t(i.alpha.size()) - 1);
    double const expected = analysis::expected_distance(i.alpha, x, chosen);
    auto const b = analysis::bound_random_set(i.alpha, x, chosen);
    return at_most(b.lower, expected) && at_most(expected, b.upper) && at_most(b.upper, b.lower + b.gap);
  });
  numbers const same(4, 1.0), alpha(4, 0.25);
  auto const b = analysis::bound_random_set(alpha, points(same, 1), 1);
  e.refute(!(b.gap < 1e9) && b.upper < 1e-12, "identical keys, N = 1: a conditional mean is 0, epsilon is ", b.gap,
           ", the variance form ", b.upper);
}

void corollary2_fixed(evidence& e) {
  numbers found;
  for (index_t const n : {50, 200, 1000}) {
    rng draw{std::uint64_t(n)};
    numbers const x = draw.sphere(n, 128), alpha(std::size_t(n), 1 / double(n));
    numbers const y = analysis::weighted(alpha, points(x, 128));
    found.push_back(analysis::select(points(y, 128), {0, 1, 2, 3, 4}).distance);
  }
  e.refute(found[2] > 2.2, "N = 5, random unit keys, alpha = 1 / L, L = 50, 200, 1000: d~ = ", found,
           ", sum |alpha x| = 1, sqrt(N + 1) = ", std::sqrt(6.0));
  numbers const equal(1000, 1e-3), same(1000, 1.0);
  auto const identical = analysis::distance_of_long_rows(equal, points(same, 1), 5);
  e.refute(close(identical.lower, 4, 1e-9), "identical keys: E goes to ", identical.lower, " = (N - 1) |x|, not ",
           identical.printed);
  e.on_random("sum |y - N ymean| <= E <= sum sqrt(|y - N ymean|^2 + N S^2) within O(N / L)", [](rng& draw) {
    index_t const n = 60, chosen = draw.between(1, 2);
    numbers alpha, x = draw.normals(2 * n);
    for (index_t j = 0; j < n; ++j) alpha.push_back(draw.uniform(0.5, 1.5) / double(n));
    double const shift = draw.uniform(0, 4);
    for (double& v : x) v += shift;
    points const keys(x, 2);
    auto const limit = analysis::distance_of_long_rows(alpha, keys, chosen);
    double const expected = analysis::expected_distance(alpha, keys, chosen);
    return limit.lower * (1 - 0.1) <= expected && expected <= limit.upper * (1 + 0.1);
  });
}

void corollary2_all(evidence& e) {
  rng draw(4);
  numbers const x = draw.normals(18), alpha = softmax(draw.normals(6));
  numbers all, each;
  for (index_t const n : {1, 3, 5}) {
    all.push_back(analysis::expected_distance(alpha, points(x, 3), n));
    each.push_back(all.back() / double(6 - n));
  }
  auto const whole = analysis::select(points(x, 3), {0, 1, 2, 3, 4, 5});
  e.confirm(whole.distance == 0, "N = L: an empty sum");
  e.note("L = 6, N = 1, 3, 5: E = ", all, ", per key outside ", each, ": the terms run out, keys do not come closer");
}

void proportional(evidence& e) {
  numbers same, isotropic;
  for (index_t const n : {100, 1000, 10000}) {
    double const c = 1 / double(n);
    same.push_back(double(n - n / 2) * std::fabs(c - double(n / 2) * c));
  }
  for (index_t const n : {100, 400, 1600}) {
    rng draw{std::uint64_t(n)};
    numbers const x = draw.sphere(n, 64), alpha(std::size_t(n), 1 / double(n));
    isotropic.push_back(analysis::bound_fixed_set(alpha, points(x, 64), n / 2).chosen.distance);
  }
  e.refute(same[2] > 9 * same[1], "identical unit keys, N = L / 2, L = 100, 1000, 10000: d~ = ", same);
  e.refute(isotropic[2] > 3 * isotropic[0], "isotropic ones, L = 100, 400, 1600: ", isotropic,
           ", growing like sqrt(L)");
}

void linear_growth(evidence& e) {
  e.on_random("sum |alpha x| <= max |x| whenever sum alpha = 1", [](rng& draw) {
    instance const i = random_instance(draw, 2, 60);
    points const x(i.x, 3);
    double longest = 0;
    for (index_t j = 0; j < x.count(); ++j) longest = std::fmax(longest, analysis::norm(x[j]));
    return at_most(analysis::distance_of_long_rows(i.alpha, x, 1).printed, longest);
  });
  numbers found;
  for (index_t const n : {100, 400, 1600}) {
    rng draw{std::uint64_t(n)};
    numbers alpha(std::size_t(n), 0.5 / double(n - 5));
    for (std::size_t j = 0; j < 5; ++j) alpha[j] = 0.1;
    numbers const x = draw.sphere(n, 16);
    found.push_back(analysis::bound_fixed_set(alpha, points(x, 16), 5).chosen.distance);
  }
  e.note("linear growth comes with a top set of fixed mass: mass 1/2 on 5 keys, L = 100, 400, 1600: d~ = ", found);
}

/// N_s / N of keys that are all selected, over draws of the keys; `lower` the mean lower bound of Theorem 2.
struct share_of_draws {
  double mean = 0, error = 0, lower = 0;
};
share_of_draws inside(rng& draw, numbers const& alpha, index_t width, double r, int draws) {
  share_of_draws s;
  double squares = 0;
  std::vector<index_t> all;
  for (std::size_t i = 0; i < alpha.size(); ++i) all.push_back(index_t(i));
  for (int k = 0; k < draws; ++k) {
    numbers const x = draw.sphere(index_t(alpha.size()), width);
    points const keys(x, width);
    numbers const y = analysis::weighted(alpha, keys);
    double const share = double(analysis::separable(analysis::select(points(y, width), all), r)) / double(alpha.size());
    s.mean += share / draws;
    squares += share * share / draws;
    s.lower +=
        analysis::bound_separability(alpha, analysis::sphere<double>{1, analysis::least_distance(keys), width}, r)
            .lower /
        draws;
  }
  s.error = std::sqrt(std::fmax(squares - s.mean * s.mean, 1e-3) / draws);
  return s;
}

void theorem2_lower(evidence& e) {
  e.on_random("|alpha_i x_i - s| <= xi_i for every single set of keys", [](rng& draw) {
    index_t const n = draw.between(2, 10), d = draw.between(2, 8);
    numbers const x = draw.sphere(n, d), alpha = softmax(draw.normals(n, draw.uniform(0.1, 2)));
    points const keys(x, d);
    std::vector<index_t> all;
    for (index_t i = 0; i < n; ++i) all.push_back(i);
    numbers const y = analysis::weighted(alpha, keys);
    auto const s = analysis::select(points(y, d), all);
    auto const b =
        analysis::bound_separability(alpha, analysis::sphere<double>{1, analysis::least_distance(keys), d}, 0.5);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!at_most(s.chosen_distance[i], b.spread[i])) return false;
    return true;
  });
  e.on_random("1 - sum xi / (r N) <= N_s / N on average over 40 draws of the keys", [](rng& draw) {
    numbers const alpha = softmax(draw.normals(draw.between(2, 8), draw.uniform(0.1, 2)));
    auto const share = inside(draw, alpha, 6, draw.uniform(0.05, 1.5), 40);
    return share.lower <= share.mean + 1e-12;  // it holds draw by draw
  });
}

void theorem2_upper(evidence& e) {
  auto const wide = analysis::bound_separability(numbers(16, 1.0 / 64), analysis::sphere<double>{1, 0.5, 256}, 10.0);
  e.refute(wide.printed < 0.01, "r = 10 above every distance (N_s / N = 1): printed bound ", wide.printed);
  rng draw(3);
  numbers const alpha(256, 1.0 / 256);
  double const share = inside(draw, alpha, 3, 0.15, 10).mean;
  auto const b = analysis::bound_separability(alpha, analysis::sphere<double>{1, 0, 3}, 0.15);
  e.refute(share > b.printed + 0.02, "r = 0.15 below xi = ", b.spread[0], ", N = 256, d = 3: N_s / N = ", share, " > ",
           b.printed);
  e.note("xi bounds the distance from above, but a lower tail needs a bound of the mean from below");
}

void corrected_upper(evidence& e) {
  double tightest = 1;
  e.on_random("E[N_s] / N (200 draws each, 5 standard errors) <= (1 / N) sum exp(-((mu - r)_+)^2 / (2 M^2 A))",
              [&](rng& draw) {
                numbers const alpha = softmax(draw.normals(draw.between(2, 5), draw.uniform(0.1, 2)));
                index_t const d = draw.between(2, 5);
                double const r = draw.uniform(0.3, 1.1) * analysis::norm(alpha);
                double const upper = analysis::bound_separability(alpha, analysis::sphere<double>{1, 0, d}, r).upper;
                auto const share = inside(draw, alpha, d, r, 200);
                if (upper < 1) tightest = std::fmin(tightest, upper - share.mean);
                return share.mean <= upper + 5 * share.error;
              });
  e.note("smallest bound - estimate below 1: ", tightest);
}

void eighty_percent(evidence& e) {
  e.on_random("for r <= xi the printed upper bound is at least exp(-1 / 16)", [](rng& draw) {
    numbers alpha = softmax(draw.normals(draw.between(2, 12), draw.uniform(0.1, 2)));
    auto const b = analysis::bound_separability(alpha, analysis::sphere<double>{1, draw.uniform(0, 1), 8}, 1e-9);
    return at_most(std::exp(-1.0 / 16), b.printed);
  });
  double least = 1, most = 0;
  for (int n = 0; n < 300; ++n) {
    rng draw{std::uint64_t(n) + 77};
    index_t const length = 64, d = 32;
    numbers const x = draw.sphere(length, d), q = draw.normals(d, draw.uniform(0.5, 6));
    points const keys(x, d);
    numbers const alpha = softmax(analysis::dot_scores(q, keys, 1.0)), y = analysis::weighted(alpha, keys);
    auto const s = analysis::select(points(y, d), analysis::largest(alpha, 16));
    double const share = double(analysis::separable(s, analysis::separation_radius(s), analysis::ball::open)) / 16;
    least = std::fmin(least, share);
    most = std::fmax(most, share);
  }
  e.refute(most > 0.95, "random unit keys, softmax scores, L = 64, N = 16, the paper's r: N_s / N from ", least, " to ",
           most);
}

}  // namespace

std::vector<claim> limits_claims() {
  using enum status;
  return {
      {"L01", "Lemma 1", "C1 / L <= alpha_i <= C2 / L for F independent of L and logits in [-a, a]", conditional,
       "This holds for weights F(l) / sum F(l) with F > 0, C1 = min F / max F and C2 = max F / min F", lemma1, true},
      {"L02", "Corollary 1", "e^(-2 Delta / T) / L <= alpha_i <= e^(2 Delta / T) / L with Delta = |q| |k|", conditional,
       "The largest norm counts: Delta = |q| max |k_j|", corollary1, true},
      {"L03", "Theorem 1 (1)", "d~ <= (1 - abar) d1 + max |x_j| (abar (L - N) - (1 - abar)) for a fixed set",
       conditional,
       "This holds for the N largest weights of a row of sum 1. For a smaller sum, put the mass of the rest in the "
       "place of 1 - abar.",
       fixed_set, true},
      {"L04", "Theorem 1 (2)", "E = (L - N)/L sum |(alpha_i + N/(L-1)) x_i - xbar| + epsilon", incorrect,
       "The main term is (L - N)/L sum |alpha_i (1 + N/(L-1)) x_i - N/(L-1) xbar|", random_set, true},
      {"L05", "Theorem 1 (2)", "epsilon <= the printed bound", conditional,
       "This holds with the corrected main term. The bound is infinite where a conditional mean is 0. sqrt(mean^2 + "
       "variance) is always finite.",
       epsilon, true},
      {"L06", "Corollary 2 (i)", "N fixed: E is about sum |alpha_i x_i|", incorrect,
       "E lies between sum |y - N ymean| and sum sqrt(|y - N ymean|^2 + N S^2), y = alpha x", corollary2_fixed, true},
      {"L07", "Corollary 2 (ii)", "N to L: E goes to 0", holds, "", corollary2_all},
      {"L08", "contributions, 4, 5", "When N grows like L the distance necessarily collapses to zero", incorrect, "",
       proportional},
      {"L09", "3.1 (i)", "d~ grows linearly in L exactly as Corollary 2 (i) predicts", inconsistent,
       "Corollary 2 (i) is bounded by max |x|. Linear growth comes with a top set of fixed mass.", linear_growth},
      {"L10", "Theorem 2", "1 - sum xi_i / (r N) <= E[N_s] / N", holds, "", theorem2_lower},
      {"L11", "Theorem 2", "E[N_s] / N <= (1 / N) sum exp(-(r - xi)^2 / (16 M^2))", incorrect, "See L11b",
       theorem2_upper},
      {"L11b", "our correction",
       "For independent uniform keys E[N_s] / N <= (1 / N) sum exp(-((mu_i - r)_+)^2 / (2 M^2 A_i))", holds, "",
       corrected_upper},
      {"L12", "contributions, 3.2, 4", "The geometric bound states that no more than about 80 % can be distinguished",
       incorrect, "", eighty_percent},
  };
}

}  // namespace ledger
