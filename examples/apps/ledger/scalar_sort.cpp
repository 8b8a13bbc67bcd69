// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Scalar Sort Attention: the kernel, its windows, its claims about long contexts.
#include <algorithm>
#include <numeric>

#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/analysis/row_shape.hpp>
#include <attune/analysis/similarity.hpp>

#include "common.hpp"

namespace ledger {
namespace {

void unimodal(evidence& e) {
  e.on_random("w rises towards q and falls after it, equally on both sides", [](rng& draw) {
    double const q = draw.normal(), tau = draw.uniform(0.05, 2);
    numbers k = draw.normals(30);
    for (std::size_t j = 0; j < 15; ++j) k.push_back(2 * q - k[j]);
    numbers const w = scalar_weights(q, k, tau);
    for (std::size_t a = 0; a < k.size(); ++a)
      for (std::size_t b = 0; b < k.size(); ++b)
        if (std::fabs(k[a] - q) < std::fabs(k[b] - q) - 1e-12 && w[a] < w[b]) return false;
    for (std::size_t j = 0; j < 15; ++j)
      if (!close(w[j], w[30 + j])) return false;
    return true;
  });
  e.note("this does not hold for the hybrid: its dot product is arbitrary");
}

void temperatures(evidence& e) {
  e.on_random("tau to 0: the nearest keys share all weight, tau to infinity: uniform", [](rng& draw) {
    numbers k = draw.normals(6);
    double const q = draw.normal();
    k.push_back(2 * q - k[0]);  // a tie, unless another key is nearer
    std::size_t nearest = 0;
    for (std::size_t j = 1; j < k.size(); ++j)
      if (std::fabs(k[j] - q) < std::fabs(k[nearest] - q)) nearest = j;
    numbers const cold = scalar_weights(q, k, 1e-9), hot = scalar_weights(q, k, 1e9);
    double away = 0;
    for (std::size_t j = 0; j < k.size(); ++j)
      if (std::fabs(k[j] - q) > std::fabs(k[nearest] - q) + 1e-3) away += cold[j];
    return away < 1e-6 && largest_difference(hot, numbers(7, 1.0 / 7)) < 1e-6;
  });
  e.confirm(largest_difference(scalar_weights(0, numbers{-1, 1, 3}, 1e-6), numbers{0.5, 0.5, 0}) < 1e-12,
            "a tie (-1, 1, 3) at q = 0: 1/2, 1/2, 0");
}

void tail(evidence& e) {
  double const tau = 0.5, r = 0.8, h = 1e-3;
  double outside = 0, all = 0;
  for (double x = -20 + h / 2; x < 20; x += h) {
    double const f = std::exp(-x * x / tau);
    all += f;
    if (std::fabs(x) > r) outside += f;
  }
  e.confirm(close(outside / all, std::erfc(r / std::sqrt(tau)), 1e-5),
            "uniform keys on a line: mass outside r = ", outside / all,
            ", erfc(r / sqrt(tau)) = ", std::erfc(r / std::sqrt(tau)));
  numbers k(1, 1.0);
  for (int i = 0; i < 50; ++i) k.push_back(1.01 + 0.001 * i);
  numbers const w = scalar_weights(0, k, 0.25);
  double const missed = 1 - w[0];
  e.refute(missed > 0.9 && std::erfc(1.005 / 0.5) < 0.01,
           "q = 0, keys 1 and 1.01 to 1.059, tau = 0.25, r = 1.005: mass outside ", missed, ", erfc ",
           std::erfc(1.005 / 0.5));
  e.on_random("any keys: tail <= T / (Z_window + T), T = n_L e^(-d_L^2 / tau) + n_R e^(-d_R^2 / tau)", [](rng& draw) {
    numbers keys = draw.normals(draw.between(2, 40), draw.uniform(0.1, 3));
    std::sort(keys.begin(), keys.end());
    double const q = draw.normal(), bandwidth = draw.uniform(0.05, 2), radius = draw.uniform(0.05, 2);
    double window = 0, left = 0, right = 0, total = 0, nl = 0, nr = 0, dl = 1e9, dr = 1e9;
    for (double x : keys) {
      double const f = std::exp(-(x - q) * (x - q) / bandwidth);
      total += f;
      if (std::fabs(x - q) <= radius)
        window += f;
      else if (x < q) {
        ++nl;
        dl = std::fmin(dl, q - x);
      } else {
        ++nr;
        dr = std::fmin(dr, x - q);
      }
    }
    if (nl > 0) left = nl * std::exp(-dl * dl / bandwidth);
    if (nr > 0) right = nr * std::exp(-dr * dr / bandwidth);
    return total == 0 || at_most(1 - window / total, (left + right) / (window + left + right));
  });
}

void fixed_k(evidence& e) {
  numbers captured;
  for (index_t const n : {100, 1000, 10000}) {
    rng draw{std::uint64_t(n)};
    numbers k = draw.uniforms(n, -3, 3);
    std::sort(k.begin(), k.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    numbers const w = scalar_weights(0, k, 0.1);
    captured.push_back(std::accumulate(w.begin(), w.begin() + 64, 0.0));
  }
  e.refute(captured[0] > 0.999 && captured[2] < 0.1,
           "keys uniform in [-3, 3], tau = 0.1, n = 100, 1000, 10000: the 64 nearest have ", captured);
}

void dilution(evidence& e) {
  numbers effective, scaled;
  for (index_t const n : {100, 1000, 10000}) {
    rng draw{std::uint64_t(n) + 1};
    numbers const w = scalar_weights(0, draw.uniforms(n, -3, 3), 0.1);
    auto const s = analysis::shape_of(w);
    effective.push_back(s.effective_keys);
    scaled.push_back(double(n) * s.highest);
  }
  e.refute(effective[2] > 50 * effective[0] && scaled[2] < 20,
           "keys uniform in [-3, 3], n = 100, 1000, 10000: effective keys ", effective, ", n max w ", scaled);
  e.on_random("scores lie in [-R^2 / tau, 0]: Lemma 1 bounds every weight by c / n", [](rng& draw) {
    double const tau = draw.uniform(0.2, 2), range = 2;
    index_t const n = draw.between(2, 60);
    auto const bound = analysis::vanishing_weights(std::exp(-range * range * 4 / tau), 1.0, n);
    for (double w : scalar_weights(draw.uniform(-range, range), draw.uniforms(n, -range, range), tau))
      if (!at_most(bound.sharp_lower, w) || !at_most(w, bound.sharp_upper)) return false;
    return true;
  });
  e.note("adding keys that are all far from q does not dilute");
  e.note("the two papers contradict each other, and Limitations of Normalization is right");
}

void half_window(evidence& e) {
  numbers const k{0, 3, 3.1, 3.2, 3.3};
  double const q = 2.9;
  auto const insertion = std::lower_bound(k.begin(), k.end(), q) - k.begin();
  e.refute(insertion == 1, "keys ", k,
           ", q = 2.9: two on each side of the insertion point hold 0, the four nearest are 3 to 3.3");
  e.on_random("two pointers that take the nearer neighbor find the k nearest", [](rng& draw) {
    numbers keys = draw.normals(12);
    std::sort(keys.begin(), keys.end());
    double const at = draw.normal();
    std::size_t low = std::size_t(std::lower_bound(keys.begin(), keys.end(), at) - keys.begin()), high = low;
    double farthest = 0;
    for (int n = 0; n < 5; ++n) {
      if (high == keys.size() || (low > 0 && at - keys[low - 1] <= keys[high] - at))
        --low;
      else
        ++high;
    }
    for (std::size_t j = low; j < high; ++j) farthest = std::fmax(farthest, std::fabs(keys[j] - at));
    int nearer = 0;
    for (double x : keys)
      if (std::fabs(x - at) <= farthest) ++nearer;
    return high - low == 5 && nearer == 5;
  });
}

void accessed(evidence& e) {
  double const tau = 0.1, eps = 1e-3, radius = std::sqrt(-tau * std::log(eps));
  index_t const n = 100000;
  rng draw(6);
  auto const ratio = [&](numbers const& k, double q, double density) {
    double count = 0;
    for (double x : k)
      if (std::fabs(x - q) < radius) ++count;
    return count / (2 * radius * density);
  };
  numbers const uniform = draw.uniforms(n, -3, 3), normal = draw.normals(n, 0.3);
  e.confirm(std::fabs(ratio(uniform, 0, double(n) / 6) - 1) < 0.05,
            "uniform density: count / (2 R rho) = ", ratio(uniform, 0, double(n) / 6));
  double const at_edge = ratio(uniform, 3, double(n) / 6),
               bell = ratio(normal, 0, double(n) / (0.3 * std::sqrt(6.283185307)));
  e.refute(at_edge < 0.6 && bell < 0.6, "at the edge of the keys: ", at_edge, ", normal keys of deviation 0.3: ", bell);
}

void threshold(evidence& e) {
  double const unnormalised = std::exp(-4 / 0.1), share = scalar_weights(0, numbers{2, 2}, 0.1)[0];
  e.refute(unnormalised < 1e-6 && share == 0.5, "two keys at distance 2, tau = 0.1: unnormalized weights ",
           unnormalised, ", shares ", share, ": a threshold must be relative to the best score");
}

void experts(evidence& e) {
  e.on_random("p_dot p_rbf / sum = softmax of the sum", [](rng& draw) {
    numbers const a = draw.normals(9, 2), b = draw.normals(9, 2);
    numbers both;
    for (std::size_t j = 0; j < 9; ++j) both.push_back(a[j] + b[j]);
    return largest_difference(analysis::product_of_experts(softmax(a), softmax(b)), softmax(both)) < 1e-13;
  });
}

void identity(evidence& e) {
  e.on_random("q.k = (|q|^2 + |k|^2 - |q-k|^2) / 2, and -g |q-k|^2 and 2 g q.k - g |k|^2 have the same softmax",
              [](rng& draw) {
                numbers const q = draw.normals(6), k = draw.normals(42);
                analysis::points<double> const keys(k, 6);
                double const g = draw.uniform(0.1, 2);
                numbers distance, dot;
                for (index_t j = 0; j < 7; ++j) {
                  double const qk = analysis::dot(q, keys[j]), kk = analysis::dot(keys[j], keys[j]),
                               d = analysis::squared_distance(q, keys[j]);
                  if (!close(qk, (analysis::dot(q, q) + kk - d) / 2)) return false;
                  distance.push_back(-g * d);
                  dot.push_back(2 * g * qk - g * kk);
                }
                return largest_difference(softmax(distance), softmax(dot)) < 1e-12;
              });
  e.note("equal up to a row constant: the lse differs by g |q|^2");
}

void decomposition(evidence& e) {
  auto const sides = [](numbers const& w, numbers const& k, double q) {
    double mean = 0, left = 0, variance = 0;
    for (std::size_t j = 0; j < k.size(); ++j) mean += w[j] * k[j];
    for (std::size_t j = 0; j < k.size(); ++j) {
      left += w[j] * (q - k[j]) * (q - k[j]);
      variance += w[j] * (k[j] - mean) * (k[j] - mean);
    }
    return std::pair{left, variance + (q - mean) * (q - mean)};
  };
  e.on_random(
      "both sides agree for sum w = 1, and for sum w = W the left side is W (Var + offset^2) of w / W", [&](rng& draw) {
        numbers const p = softmax(draw.normals(6)), k = draw.normals(6);
        double const q = draw.normal(), mass = draw.uniform(0.1, 4);
        numbers w = p;
        for (double& x : w) x *= mass;
        auto const normalised = sides(p, k, q);
        return close(normalised.first, normalised.second) && close(sides(w, k, q).first, mass * normalised.second);
      });
  auto const s = sides(numbers{1, 1}, numbers{0, 1}, 0.0);
  e.refute(!close(s.first, s.second), "w = (1, 1), k = (0, 1), q = 0: ", s.first, " and ", s.second);
}

double quantile_distance(numbers const& sorted, double a, double b) {  // W2^2 to U[a, b] by quadrature
  std::size_t const n = sorted.size();
  int const steps = 200;
  double total = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (int s = 0; s < steps; ++s) {
      double const u = (double(i) + (s + 0.5) / steps) / double(n), d = sorted[i] - (a + (b - a) * u);
      total += d * d / (double(n) * steps);
    }
  return total;
}
numbers linspace(std::size_t n, double a, double b) {
  numbers x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(a + (b - a) * double(i) / double(n - 1));
  return x;
}
double mean_square(numbers const& x, numbers const& y) { return analysis::squared_distance(x, y) / double(x.size()); }

void spread(evidence& e) {
  numbers const grid = linspace(8, -3, 3);
  double const found = quantile_distance(grid, -3, 3);
  e.refute(found > 0.1, "keys on linspace(-3, 3, 8): the loss is 0, W2^2 to the uniform law ", found);
  e.on_random("W2^2 = mean((k_(i) - m_i)^2) + (b - a)^2 / (12 n^2), m the midpoints", [](rng& draw) {
    auto const n = std::size_t(draw.between(1, 9));
    numbers k = draw.normals(index_t(n), 2), middle;
    std::sort(k.begin(), k.end());
    for (std::size_t i = 0; i < n; ++i) middle.push_back(-3 + 6 * (double(i) + 0.5) / double(n));
    return close(quantile_distance(k, -3, 3), mean_square(k, middle) + 36 / (12.0 * double(n * n)), 1e-4);
  });
  e.on_random("the loss is W2^2 to the n-point grid: no assignment of keys to targets costs less", [](rng& draw) {
    numbers k = draw.normals(5, 2);
    std::sort(k.begin(), k.end());
    numbers const grid5 = linspace(5, -3, 3);
    double const loss = mean_square(k, grid5);
    do {  // k in every order, the sorted one first
      if (mean_square(k, grid5) < loss - 1e-12) return false;
    } while (std::next_permutation(k.begin(), k.end()));
    return true;
  });
}

void stronger(evidence& e) {
  numbers const grid = linspace(10, -3, 3);
  double const variance = analysis::dot(grid, grid) / 10, root = std::sqrt(variance);
  numbers two;
  for (double x : grid) two.push_back(x < 0 ? -root : root);
  e.confirm(close(analysis::dot(two, two) / 10, variance) && mean_square(two, grid) > 0.5,
            "a two-point law of the same variance ", variance, ": L_spread = ", mean_square(two, grid), " against 0");
}

void log_damping(evidence& e) {
  numbers slope;
  for (double const tau : {1e-3, 0.1, 1.0, 10.0}) slope.push_back(1 / (1 + tau));
  e.refute(slope[0] > 0.99 && slope[3] < 0.1, "d log(1 + tau) / dtau at 0.001, 0.1, 1, 10: ", slope,
           ", linear: 1. They are alike at small tau, the logarithm pulls less at large tau.");
}

void alignment_gradient(evidence& e) {
  e.on_random("-dL_align / dk_j = 2 w_j (q - k_j) points from k_j to q", [](rng& draw) {
    double const q = draw.normal(), k = draw.normal(), w = draw.uniform(0.01, 1), h = 1e-6;
    double const slope = (w * (q - k - h) * (q - k - h) - w * (q - k + h) * (q - k + h)) / (2 * h);
    return std::fabs(-slope - 2 * w * (q - k)) < 1e-6 && -slope * (q - k) >= -1e-9;
  });
}

}  // namespace

std::vector<claim> scalar_sort_claims() {
  using enum status;
  return {
      {"S01", "key ordering", "w is unimodal in k, maximal at k = q, with symmetric decay", holds, "", unimodal},
      {"S02", "temperature", "tau to 0: hard nearest neighbor; tau to infinity: uniform", holds,
       "Keys at the same distance share the weight", temperatures},
      {"S03", "binary search 2", "The mass outside radius r decays as erfc(r / sqrt(tau)), independently of n",
       conditional, "This holds for a uniform density of keys on the line. For any keys, tail <= T / (Z_window + T).",
       tail, true},
      {"S04", "binary search", "k is a constant that need not grow with n", incorrect,
       "For keys of a fixed density k grows like 2 rho n sqrt(-tau log eps)", fixed_k},
      {"S05", "overview 3, long context",
       "The distribution does not dilute as context grows; the effective width is O(1) in n", incorrect,
       "The width in key space is O(1). Bounded scores make every weight of order 1 / n.", dilution, true},
      {"S06", "binary search 2", "The k nearest keys are k / 2 on each side of the insertion point", incorrect,
       "Two pointers walk outwards from the insertion point and take the nearer key each time", half_window, true},
      {"S07", "bandwidth", "E[keys accessed] is about 2 sqrt(-tau log eps) rho(q)", conditional,
       "This holds where the density is constant over the window", accessed},
      {"S08", "bandwidth", "A key below the unnormalized threshold eps is negligible", incorrect, "", threshold},
      {"S09", "hybrid overview", "The renormalized product of experts is the softmax of the summed score", holds, "",
       experts},
      {"S10", "prior art 1",
       "q.k = -|q-k|^2 / 2 + |q|^2 / 2 + |k|^2 / 2, and scaled RBF is a dot product with a key penalty", holds, "",
       identity},
      {"S11", "term 1", "sum w (qs - ks)^2 = Var_w(ks) + (qs - E_w ks)^2", conditional, "This holds for sum w = 1",
       decomposition, true},
      {"S12", "term 2", "mean((sorted - linspace)^2) is the Wasserstein distance to uniform on [a, b]", incorrect,
       "It is the squared distance to the n-point grid", spread, true},
      {"S13", "term 2", "It is strictly stronger than -Var(ks)", holds, "", stronger},
      {"S14", "term 3", "log(1 + tau) rather than linear avoids extreme gradients at small tau", incorrect,
       "The logarithm weakens the pull at large tau", log_damping},
      {"S15", "term 1", "The gradient pushes the keys of high weight towards qs", holds, "", alignment_gradient},
  };
}

}  // namespace ledger
