// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Why Softmax.
#include <attune/analysis/grouping.hpp>
#include <attune/analysis/maxent.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using points = analysis::points<double>;

void rbf(evidence& e) {
  e.on_random("softmax of dots = softmax of -|q-k|^2 / (2 T sqrt d) for keys of norm 2 and any query", [](rng& draw) {
    index_t const d = draw.between(2, 6), n = draw.between(1, 9);
    numbers k = draw.sphere(n, d);
    for (double& x : k) x *= 2;
    numbers const q = draw.normals(d, 3);
    double const sigma2 = analysis::rbf_bandwidth(draw.uniform(0.2, 2), d);
    points const keys(k, d);
    return largest_difference(softmax(analysis::dot_scores(q, keys, sigma2)),
                              softmax(analysis::rbf_scores(q, keys, sigma2))) < 1e-12;
  });
}

void maximum_entropy(evidence& e) {
  e.on_random("objective(softmax) - objective(q) = T KL(q, softmax) >= 0, the maximum is T lse(z / T)", [](rng& draw) {
    numbers const z = draw.normals(6, 2), q = softmax(draw.normals(6, 2));
    double const t = draw.uniform(0.3, 2);
    numbers const p = softmax(z, t);
    double const best = analysis::gibbs_objective(p, z, t), gap = best - analysis::gibbs_objective(q, z, t);
    return close(best, analysis::potential(z, t), 1e-12) && std::fabs(gap - t * analysis::divergence(q, p)) < 1e-11 &&
           gap >= -1e-12;
  });
}

void lse_derivatives(evidence& e) {
  e.on_random("grad lse = softmax, Hessian = lambda (diag p - p p^T), by differences", [](rng& draw) {
    numbers const z = draw.normals(5);
    double const t = draw.uniform(0.4, 2), h = 1e-5;
    numbers const p = softmax(z, t);
    auto const hessian = analysis::potential_hessian(z, t);
    for (std::size_t j = 0; j < 5; ++j) {
      numbers up = z, down = z;
      up[j] += h;
      down[j] -= h;
      if (std::fabs((analysis::potential(up, t) - analysis::potential(down, t)) / (2 * h) - p[j]) > 1e-8) return false;
      numbers const right = softmax(up, t), left = softmax(down, t);
      for (std::size_t i = 0; i < 5; ++i)
        if (std::fabs((right[i] - left[i]) / (2 * h) - hessian(index_t(i), index_t(j))) > 1e-7) return false;
    }
    return true;
  });
}

void lipschitz(evidence& e) {
  e.on_random("|Hessian| <= lambda / 2 <= lambda, |softmax(lambda z) - softmax(lambda y)| <= lambda / 2 |z - y|",
              [](rng& draw) {
                numbers const z = draw.normals(6, 2);
                numbers y = z;
                for (double& x : y) x += draw.normal() * draw.uniform(0.01, 2);
                double const t = draw.uniform(0.1, 3);
                return analysis::sensitivity_of_softmax(softmax(z, t), t).spectral <= 0.5 / t * (1 + 1e-12) &&
                       at_most(analysis::distance(softmax(z, t), softmax(y, t)), analysis::distance(z, y) / (2 * t));
              });
  double const tied = analysis::largest_eigenvalue(numbers{0.5, 0, 0.5});
  e.confirm(tied == 0.5, "p = (1/2, 1/2, 0): |Hessian| = ", tied, " lambda, so lambda / 2 is attained");
}

void weight_drift(evidence& e) {
  double closest = 0;
  e.on_random("|p~ - p| <= |dz| / (2 T) <= |K_g - K_h| |q| / (2 T sqrt d)", [&](rng& draw) {
    index_t const n = 7, d = 4;
    numbers const q = draw.normals(d), own = draw.normals(n * d);
    numbers shared = own;
    double const by = draw.uniform(0, 2);
    for (double& x : shared) x += by * draw.normal();
    auto const g = analysis::drift_of_grouping(q, points(own, d), points(shared, d), draw.uniform(0.1, 2));
    if (g.by_logits > 0) closest = std::fmax(closest, g.drift / g.by_logits);
    return at_most(g.drift, g.by_logits) && at_most(g.by_logits, g.by_operator);
  });
  e.note("largest drift / bound seen ", closest);
}

void output_drift(evidence& e) {
  rng draw(5);
  numbers const p = softmax(draw.normals(4)), v = draw.normals(12), w = draw.normals(12);
  double moved = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    double difference = 0;
    for (std::size_t j = 0; j < 4; ++j) difference += p[j] * (w[3 * j + c] - v[3 * j + c]);
    moved += difference * difference;
  }
  e.refute(moved > 0.01, "equal keys, other values: weights do not drift, the output does by ", std::sqrt(moved));
  e.on_random("|o~ - o| <= |V_h| |p~ - p| + |V_g - V_h| |p~|", [](rng& random) {
    numbers const a = softmax(random.normals(4)), b = softmax(random.normals(4)), own = random.normals(12),
                  shared = random.normals(12);
    double square = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      double difference = 0;
      for (std::size_t j = 0; j < 4; ++j) difference += b[j] * shared[3 * j + c] - a[j] * own[3 * j + c];
      square += difference * difference;
    }
    return at_most(std::sqrt(square), analysis::output_drift_bound(points(own, 3), points(shared, 3),
                                                                   analysis::distance(a, b), analysis::norm(b)));
  });
}

void cold(evidence& e) {
  numbers const q{1, 0.5}, k{1, 0, 0, 5};
  points const keys(k, 2);
  numbers const s = analysis::dot_scores(q, keys, 1.0);
  e.refute(
      s[1] > s[0] && analysis::distance(q, keys[0]) < analysis::distance(q, keys[1]) && softmax(s, 0.01)[1] > 0.999,
      "q = (1, 0.5), keys (1, 0) and (0, 5): the nearest is the first, T = 0.01 gives the second the weight ",
      softmax(s, 0.01)[1]);
  e.on_random(
      "the mass outside the m keys of the largest score is <= (L - m) / m e^(-gap / T), and with equal key norms they "
      "are the nearest keys",
      [](rng& random) {
        numbers const unit = random.sphere(6, 3), query = random.normals(3);
        points const all(unit, 3);
        numbers const scores = analysis::dot_scores(query, all, 1.0);
        auto const limits = analysis::limits_of(scores);
        double const t = random.uniform(0.01, 0.3);
        numbers const p = softmax(scores, t);
        double away = 0, nearest = 1e9, best = 0;
        for (index_t j = 0; j < 6; ++j) {
          nearest = std::fmin(nearest, analysis::distance(query, all[j]));
          if (limits.cold[std::size_t(j)] == 0)
            away += p[std::size_t(j)];
          else
            best = analysis::distance(query, all[j]);
        }
        return at_most(away, limits.cold_bound(t)) && close(best, nearest);
      });
}

void dot_variance(evidence& e) {
  rng draw(9);
  index_t const d = 64, n = 20000;
  double independent = 0, same = 0;
  for (index_t i = 0; i < n; ++i) {
    numbers const q = draw.normals(d), k = draw.normals(d);
    double const dot = analysis::dot(q, k);
    independent += dot * dot / double(n * d);
    same += analysis::dot(q, q) / 8 / double(n);
  }
  e.confirm(std::fabs(independent - 1) < 0.05, "d = 64: Var<q, k> / d = ", independent);
  e.refute(same > 7.5, "q = k: the mean of <q, q> / sqrt(d) is ", same, " = sqrt(d)");
}

void hot(evidence& e) {
  e.on_random("|p - 1 / L| <= (e^(range / T) - 1) / L", [](rng& draw) {
    numbers const z = draw.normals(5, 3);
    double const t = draw.uniform(0.5, 1e6);
    auto const limits = analysis::limits_of(z);
    for (double p : softmax(z, t))
      if (!at_most(std::fabs(p - 0.2), limits.hot_bound(t))) return false;
    return true;
  });
}

}  // namespace

std::vector<claim> softmax_claims() {
  using enum status;
  return {
      {"N01", "dot products", "For |q| = |k_j| softmax weights are RBF weights of bandwidth sigma^2 = T sqrt(d)", holds,
       "Equal key norms are enough", rbf, true},
      {"N02", "MaxEnt", "softmax(z / T) is the unique maximizer of <p, z> + T H(p)", holds, "", maximum_entropy},
      {"N03", "MaxEnt", "The gradient of lse_lambda is softmax(lambda z), its Hessian lambda (diag p - p p^T)", holds,
       "", lse_derivatives},
      {"N04", "MaxEnt", "The Hessian's norm is at most lambda; softmax(lambda z) is lambda-Lipschitz", holds,
       "The sharp bound is lambda / 2", lipschitz, true},
      {"N05", "grouping", "|p~ - p| <= |dz| / T <= |K_g - K_h| |q| / (T sqrt(d))", holds, "Half of this bound holds",
       weight_drift, true},
      {"N06", "grouping", "... and thus output drift is controlled by dictionary mismatch", incorrect,
       "|o~ - o| <= |V_h| |p~ - p| + |V_g - V_h| |p~|: values are shared too", output_drift, true},
      {"N07", "optimization", "T to 0 gives the hard nearest neighbor", conditional,
       "T to 0 gives the key with the largest score. It is the nearest key if all key norms are equal.", cold, true},
      {"N08", "scale", "Var<q, k> = d, so 1 / sqrt(d) keeps logit variance O(1)", conditional,
       "This holds for independent q and k", dot_variance},
      {"N09", "optimization", "T to infinity gives uniform averaging", holds, "", hot},
  };
}

}  // namespace ledger
