// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every bound of attune/analysis as an inequality on random rows, flat ones and peaked ones, with ties and with keys
// far from the origin; 10,000 of each in the full tier.
#include <cmath>
#include <string>

#include <support/random.hpp>
#include <unit/check.hpp>

#include <attune/analysis/grouping.hpp>
#include <attune/analysis/heads.hpp>
#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/policies/normalizer/entmax.hpp>
#include <attune/policies/normalizer/generic.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::rng;

namespace {

using numbers_t = std::vector<double>;

numbers_t normals(rng& draw, index_t n, double scale = 1) {
  numbers_t x;
  for (index_t i = 0; i < n; ++i) x.push_back(scale * draw.normal());
  return x;
}
numbers_t random_logits(rng& draw, index_t most) {
  numbers_t l = normals(draw, draw.between(1, most), draw.pick({0.01, 1.0, 5.0, 30.0}));
  if (draw.chance(0.3)) l.push_back(l.front());  // a tie
  return l;
}
numbers_t sphere_points(rng& draw, index_t n, index_t width, double radius) {
  numbers_t x;
  for (index_t i = 0; i < n; ++i) {
    numbers_t const one = normals(draw, width);
    double const length = norm(one);
    for (double v : one) x.push_back(radius * v / length);
  }
  return x;
}
/// Keys around a common point that may be far away.
numbers_t cloud(rng& draw, index_t n, index_t width) {
  numbers_t x = normals(draw, n * width), middle = normals(draw, width, draw.pick({0.0, 1.0, 10.0}));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += middle[i % std::size_t(width)];
  return x;
}
/// a <= b up to rounding of sums of this size.
bool at_most(double a, double b) { return a <= b + 1e-12 * (1 + std::fabs(a) + std::fabs(b)); }

struct log_like {
  template <class T>
  static T map(T const& x) {
    return T(0.05) + math::softplus(x);
  }
};
struct wave {
  template <class T>
  static T map(T const& x) {
    return T(1.1) + math::sin(x);
  }
};

bool vanishing_holds(rng& draw) {
  index_t const n = draw.between(1, 40), width = draw.between(1, 6);
  numbers_t const q = normals(draw, width, draw.pick({0.3, 3.0})), k = cloud(draw, n, width);
  double const t = draw.uniform(0.2, 3);
  points<double> const keys(k, width);
  auto const r = vanishing_softmax(score_bound(q, keys), t, n);
  bool holds = r.lower <= r.sharp_lower && r.sharp_upper <= r.upper * (1 + 1e-12);
  for (double w : softmax(dot_scores(q, keys, 1.0), t))
    holds = holds && r.sharp_lower <= w * (1 + 1e-12) && w <= r.sharp_upper * (1 + 1e-12);
  auto const g = general<wave>(normals(draw, n, 4.0));
  auto const lemma = vanishing_weights(g.least, g.greatest, n);
  for (double w : g.alpha)
    holds = holds && lemma.lower <= lemma.sharp_lower && lemma.sharp_lower <= w * (1 + 1e-12) &&
            w <= lemma.sharp_upper * (1 + 1e-12) && lemma.sharp_upper <= lemma.upper * (1 + 1e-12);
  return holds;
}

bool fixed_set_holds(rng& draw) {
  index_t const n = draw.between(2, 20), width = draw.between(1, 4);
  numbers_t alpha = softmax(normals(draw, n, draw.pick({0.1, 1.0, 6.0})));
  if (draw.chance(0.5))
    for (double& w : alpha) w *= 0.3;  // a sink has the rest
  numbers_t const x = cloud(draw, n, width);
  auto const b = bound_fixed_set(alpha, points<double>(x, width), draw.between(1, n - 1));
  return at_most(b.chosen.distance, b.bound);
}

bool random_set_holds(rng& draw) {
  index_t const n = draw.between(2, 8), width = draw.between(1, 3), chosen = draw.between(1, n - 1);
  numbers_t const alpha = softmax(normals(draw, n, draw.pick({0.1, 1.0, 4.0}))), x = cloud(draw, n, width);
  points<double> const keys(x, width);
  double const e = expected_distance(alpha, keys, chosen);
  auto const b = bound_random_set(alpha, keys, chosen);
  return at_most(b.lower, e) && at_most(e, b.upper) && at_most(b.upper, b.lower + b.gap);
}

bool separability_holds(rng& draw) {
  index_t const n = draw.between(3, 14), width = draw.between(2, 12), chosen = draw.between(1, n - 1);
  double const radius = draw.pick({0.5, 1.0, 3.0});
  numbers_t const x = sphere_points(draw, n, width, radius), alpha = softmax(normals(draw, n, draw.pick({0.1, 2.0})));
  points<double> const keys(x, width);
  numbers_t const y = weighted(alpha, keys);
  auto const s = select(points<double>(y, width), largest(alpha, chosen));
  numbers_t w;
  for (index_t i : s.chosen) w.push_back(alpha[std::size_t(i)]);
  auto const b = bound_separability(w, sphere<double>{radius, least_distance(keys), width}, draw.uniform(0.01, radius));
  bool holds = b.upper <= 1;
  for (std::size_t i = 0; i < b.spread.size(); ++i) holds = holds && at_most(s.chosen_distance[i], b.spread[i]);
  return holds;
}

bool jacobian_holds(rng& draw) {
  numbers_t const l = random_logits(draw, 8);
  double const t = draw.uniform(0.05, 3);
  auto const s = sensitivity_of_softmax(softmax(l, t), t);
  auto const j = jacobian(normalizer::softmax{}, tempered(l, t));
  bool holds = at_most(s.largest_entry, s.spectral) && at_most(s.spectral, s.frobenius) &&
               at_most(s.spectral, s.row_bound) && at_most(s.row_bound, s.bound) &&
               at_most(s.largest_entry, 1 / (4 * t)) && std::fabs(s.spectral * t - spectral_norm(j)) <= 1e-12;
  auto const g = general<log_like>(l);
  auto const general_j = jacobian(normalizer::generic<log_like>{}, l);
  holds = holds && at_most(spectral_norm(general_j), g.bound()) && at_most(g.bound(), g.bound_by_extremes()) &&
          at_most(largest_entry(general_j), g.entry_bound());
  return holds && spectral_norm(jacobian(normalizer::sparsemax{}, l)) <= 1 + 1e-12;
}

bool finite_difference_holds(rng& draw) {
  numbers_t const l = random_logits(draw, 12), u = normals(draw, index_t(l.size()));
  double const t = draw.uniform(0.02, 3), eps = draw.pick({1e-3, 1e-1, 10.0});
  return finite_difference(normalizer::softmax{}, l, u, t, eps) <= finite_difference_bound(t, eps) + 1e-15 / eps;
}

bool entropic_program_holds(rng& draw) {
  numbers_t const z = random_logits(draw, 12), q = softmax(normals(draw, index_t(z.size()), 2.0));
  double const t = draw.uniform(0.05, 3), best = potential(z, t), scale = 1 + 40 * t + std::fabs(best);
  double const gap = best - gibbs_objective(q, z, t), kl = t * divergence(q, softmax(z, t));
  double highest = z.front();
  for (double x : z) highest = std::max(highest, x);
  auto const limits = limits_of(z);
  numbers_t const p = softmax(z, t);
  double off = 0, away = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (limits.cold[j] == 0) off += p[j];
    away = std::max(away, std::fabs(p[j] - 1 / double(z.size())));
  }
  // The map is 1 / (2 T)-Lipschitz at any distance, its Hessian has no negative direction and a norm of at most that.
  numbers_t const other = normals(draw, index_t(z.size()), draw.pick({0.1, 5.0})), u = normals(draw, index_t(z.size()));
  auto const hessian = potential_hessian(z, t);
  double curved = 0;
  for (index_t i = 0; i < hessian.rows(); ++i)
    for (index_t j = 0; j < hessian.columns(); ++j) curved += u[std::size_t(i)] * hessian(i, j) * u[std::size_t(j)];
  if (!at_most(distance(softmax(other, t), p), distance(other, z) / (2 * t)) || !at_most(0, curved) ||
      !at_most(spectral_norm(hessian), 1 / (2 * t)))
    return false;
  bool const far = std::isinf(kl);  // softmax has underflowed: the gap is right, the divergence is not
  return (far || std::fabs(gap - kl) <= 1e-11 * (scale + kl)) && at_most(highest, best) &&
         at_most(best, highest + t * std::log(double(z.size()))) && at_most(off, limits.cold_bound(t)) &&
         at_most(away, limits.hot_bound(t));
}

bool grouping_holds(rng& draw) {
  index_t const n = draw.between(1, 9), width = draw.between(1, 6);
  numbers_t const q = normals(draw, width), own = normals(draw, n * width);
  numbers_t shared = own;
  double const by = draw.pick({0.01, 1.0, 3.0}), t = draw.uniform(0.1, 2);
  for (double& x : shared) x += by * draw.normal();
  points<double> const k(own, width), g(shared, width);
  auto const d = drift_of_grouping(q, k, g, t);
  // The same tables as values.
  double const root = std::sqrt(double(width));
  numbers_t const p = softmax(dot_scores(q, k, root), t), other = softmax(dot_scores(q, g, root), t);
  double moved = 0;
  for (index_t c = 0; c < width; ++c) {
    double difference = 0;
    for (index_t j = 0; j < n; ++j)
      difference += other[std::size_t(j)] * g[j][std::size_t(c)] - p[std::size_t(j)] * k[j][std::size_t(c)];
    moved += difference * difference;
  }
  return at_most(d.drift, d.by_logits) && at_most(d.by_logits, d.by_operator) &&
         at_most(std::sqrt(moved), output_drift_bound(k, g, d.drift, norm(other)));
}

bool shapes_hold(rng& draw) {
  index_t const keys = draw.between(1, 30), rows = draw.between(1, 4);
  auto const head = [&] {
    numbers_t all;
    double const mass = draw.pick({1.0, 0.3});
    for (index_t i = 0; i < rows; ++i)
      for (double w : softmax(normals(draw, keys, draw.pick({0.1, 3.0, 30.0})))) all.push_back(mass * w);
    return all;
  };
  numbers_t const a = head(), b = head();
  points<double> const first(a, keys), second(b, keys);
  bool holds = true;
  for (index_t i = 0; i < rows; ++i) {
    auto const s = shape_of(first[i]);
    holds = holds && at_most(0, s.normalized_entropy) && at_most(s.normalized_entropy, std::log(double(keys))) &&
            at_most(1, s.effective_keys) && at_most(s.effective_keys, double(keys)) &&
            at_most(std::exp(-s.normalized_entropy), s.highest / s.mass);  // H is at least the smallest surprise
  }
  double const alike = head_similarity(first, second);
  holds = holds && at_most(0, alike) && at_most(alike, 1);
  for (double m : head_map(first)) holds = holds && m >= 0 && m <= 1;
  double const p = draw.uniform();
  index_t const heads = draw.between(1, 12);
  return holds && at_most(p, head_coverage(p, heads)) &&
         at_most(head_coverage(p, heads), std::fmin(1.0, double(heads) * p));
}

struct named_bound {
  char const* name;
  bool (*holds)(rng&);
};
constexpr named_bound all_bounds[] = {
    {"weights vanish (Lemma 1, Corollary 1)", vanishing_holds},
    {"distance of the largest weights (Theorem 1, 1)", fixed_set_holds},
    {"expected distance (Theorem 1, 2)", random_set_holds},
    {"xi is an upper bound of the distance (Theorem 2)", separability_holds},
    {"Jacobians", jacobian_holds},
    {"finite differences", finite_difference_holds},
    {"entropic programs, temperature limits", entropic_program_holds},
    {"grouping", grouping_holds},
    {"shapes of rows, similarity and coverage of heads", shapes_hold},
};

void check_all(std::uint64_t seed, index_t count) {
  for (auto const& bound : all_bounds)
    for (index_t n = 0; n < count; ++n) {
      rng draw(seed + std::uint64_t(n));
      if (bound.holds(draw)) continue;
      FAIL_CHECK(std::string(bound.name) << ": fails for ATTUNE_SEED=" << seed + std::uint64_t(n));
      break;
    }
}

/// Theorem 2 is about an expectation: many draws of the keys for each row of weights, five standard errors and, for
/// what so few draws may miss altogether, three draws.
void check_separability(std::uint64_t seed, index_t rows, int draws) {
  for (index_t row = 0; row < rows; ++row) {
    rng draw(seed + std::uint64_t(row));
    index_t const n = draw.between(2, 12), width = draw.between(2, draw.pick({3, 40}));
    numbers_t const w = softmax(normals(draw, n, draw.pick({0.1, 1.0, 2.0})));
    double const r = draw.uniform(0.05, 1.2) * norm(w);
    double share = 0, squares = 0, lower = 0;
    for (int k = 0; k < draws; ++k) {
      numbers_t const x = sphere_points(draw, n, width, 1);
      points<double> const keys(x, width);
      numbers_t const y = weighted(w, keys);
      std::vector<index_t> all;
      for (index_t i = 0; i < n; ++i) all.push_back(i);
      double const inside = double(separable(select(points<double>(y, width), all), r)) / double(n);
      share += inside / draws;
      squares += inside * inside / draws;
      lower += bound_separability(w, sphere<double>{1, least_distance(keys), width}, r).lower / draws;
    }
    double const error = 5 * std::sqrt(std::max(squares - share * share, 1e-4) / draws) + 3.0 / draws;
    double const upper = bound_separability(w, sphere<double>{1, 0, width}, r).upper;
    CHECK_MESSAGE(share <= upper + error, "upper bound, ATTUNE_SEED=" << seed + std::uint64_t(row));
    CHECK_MESSAGE(share >= lower - error, "lower bound, ATTUNE_SEED=" << seed + std::uint64_t(row));
  }
}

}  // namespace

TEST_SUITE("analysis_bounds") {
  TEST_CASE("every bound on 300 random instances") { check_all(1, 300); }
  TEST_CASE("separability: between its bounds on average") { check_separability(1, 20, 200); }
}
TEST_SUITE("full_analysis_bounds") {
  TEST_CASE("every bound on 10,000 random instances, new ones every time") {
    check_all(test::fresh_seed(), test::case_count());
  }
  TEST_CASE("separability: between its bounds on average, many rows") {
    check_separability(test::fresh_seed(), test::case_count(), 150);
  }
}
