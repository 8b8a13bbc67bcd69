// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Limitations of Normalization: gradients, discussion, wording.
#include <algorithm>

#include <attune/analysis/heads.hpp>
#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/length_law.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/spectrum.hpp>
#include <attune/policies/length_scale/ssmax.hpp>
#include <attune/policies/normalizer/entmax.hpp>
#include <attune/policies/normalizer/generic.hpp>
#include <attune/policies/normalizer/self_adjusted.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using points = analysis::points<double>;
using attune::normalizer::generic;

struct identity {
  template <class T>
  static T map(T const& x) {
    return x;
  }
};
struct softplus {
  template <class T>
  static T map(T const& x) {
    return attune::math::softplus(x);
  }
};

double norm_at(numbers const& l, double temperature) {
  return analysis::sensitivity_of_softmax(softmax(l, temperature), temperature).spectral;
}

void swapped_pair(evidence& e) {
  double const t = 0.7, eps = 1e-6, a = 50;
  numbers const l{0, 0, a, a + eps}, m{0, 0, a + 2 * eps, a};
  double const ratio = analysis::distance(softmax(l, t), softmax(m, t)) / (eps / t);
  e.confirm(close(analysis::distance(l, m) / eps, std::sqrt(5.0), 1e-6), "|l1 - l2| = sqrt(5) eps");
  e.refute(close(ratio, 0.75 * std::sqrt(2.0), 1e-5), "a >> T: |alpha1 - alpha2| T / eps = ", ratio,
           " = 3 sqrt(2) / 4, not sqrt(2) = ", std::sqrt(2.0));
  e.on_random("3 sqrt(2) / 4 eps / T for two logits far above all others", [](rng& draw) {
    double const temperature = draw.uniform(0.1, 2), step = 1e-6 * temperature,
                 high = draw.uniform(40, 80) * temperature;
    numbers const x{0, 0, high, high + step}, y{0, 0, high + 2 * step, high};
    return close(analysis::distance(softmax(x, temperature), softmax(y, temperature)) / (step / temperature),
                 0.75 * std::sqrt(2.0), 1e-4);
  });
}

void lemma2(evidence& e) {
  numbers norms, printed;
  for (std::size_t const n : {16u, 64u, 256u}) {
    numbers l(n, 1.0);
    l[0] = double(n);
    auto const g = analysis::general<identity>(l);
    norms.push_back(g.bound());  // attained here: F' is constant
    printed.push_back(g.printed());
    if (n == 16)
      e.confirm(close(analysis::spectral_norm(analysis::jacobian(generic<identity>{}, l)), g.bound()),
                "L = 16: |J| equals the bound by the projector");
  }
  e.refute(norms[2] > printed[2], "F(l) = l, F = (L, 1, ..., 1), L = 16, 64, 256: |J| = ", norms, ", printed ",
           printed);
  e.on_random("|J| <= |F'| sqrt(L) |alpha| / S <= |F'| max F / (L min F^2), and every entry <= the printed first term",
              [](rng& draw) {
                numbers const l = draw.normals(draw.between(1, 8), draw.uniform(0.1, 4));
                auto const g = analysis::general<softplus>(l);
                auto const j = analysis::jacobian(generic<softplus>{}, l);
                return at_most(analysis::spectral_norm(j), g.bound()) && at_most(g.bound(), g.bound_by_extremes()) &&
                       at_most(analysis::largest_entry(j), g.entry_bound());
              });
}

void sqrt2(evidence& e) {
  double const found = norm_at(numbers{0, 0}, 0.1);
  e.refute(found > 4.9, "softmax, T = 0.1, l = (0, 0): |J| = ", found);
  e.on_random("finite differences: g(T, eps) <= min(1 / (2 T), sqrt(2) / eps)", [](rng& draw) {
    numbers const l = draw.normals(8, draw.uniform(0.1, 5)), u = draw.normals(8);
    double const t = draw.uniform(0.02, 3), eps = std::pow(10, draw.uniform(-3, 1));
    return analysis::finite_difference(attune::normalizer::softmax{}, l, u, t, eps) <=
           analysis::finite_difference_bound(t, eps) + 1e-15 / eps;
  });
}

void corollary3(evidence& e) {
  double const found = norm_at(numbers{0, 0}, 1);
  e.refute(found == 0.5, "p = (1/2, 1/2): |J| T = ", found, " > 1/4");
  double largest = 0;
  e.on_random("|J| <= max 2 p (1 - p) / T <= 1 / (2 T), and entries <= 1 / (4 T)", [&](rng& draw) {
    double const t = draw.uniform(0.05, 3);
    auto const s =
        analysis::sensitivity_of_softmax(softmax(draw.normals(draw.between(2, 12), draw.uniform(0.05, 5)), t), t);
    largest = std::fmax(largest, s.spectral * 2 * t);
    return at_most(s.spectral, s.row_bound) && at_most(s.row_bound, s.bound) && at_most(s.largest_entry, 1 / (4 * t));
  });
  e.note("largest 2 T |J| seen ", largest);
}

void recovers(evidence& e) {
  double const bound = analysis::general<attune::normalizer::map::exponential>(numbers{-1, 0, 1}).entry_bound();
  e.refute(bound > 8, "F = e^(l / T), l = (-1, 0, 1), T = 1: Lemma 2 gives ", bound, ", not 0.25");
}

void heads(evidence& e) {
  e.confirm(analysis::heads_needed(0.8, 0.99) == 3, "p = 0.8: 3 heads cover ", analysis::head_coverage(0.8, 3),
            ", 2 cover ", analysis::head_coverage(0.8, 2));
  e.on_random("independent heads cover about 1 - (1 - p)^H of 2000 keys", [](rng& draw) {
    double const p = draw.uniform(0.2, 0.95);
    index_t const count = draw.between(1, 4);
    int covered = 0;
    for (int key = 0; key < 2000; ++key) {
      bool seen = false;
      for (index_t h = 0; h < count; ++h) seen = (draw.uniform() < p) || seen;
      if (seen) ++covered;
    }
    return std::fabs(covered / 2000.0 - analysis::head_coverage(p, count)) < 0.06;
  });
  e.refute(analysis::head_coverage(0.8, 1) < 0.99, "heads that agree cover as much as one head, ",
           analysis::head_coverage(0.8, 1), ", however many");
}

void scalable(evidence& e) {
  for (double const gap : {0.5, 1.0, 1.5}) {
    numbers w;
    for (index_t const keys : {10, 1000, 1000000})
      w.push_back(analysis::leading_weight(attune::length_scale::ssmax{1.0}, keys, gap));
    if (gap == 1)
      e.confirm(std::fabs(w[2] - 0.5) < 1e-3, "s gap = 1: the weight at L = 10, 10^3, 10^6 is ", w);
    else
      e.refute(gap < 1 ? w[2] < 0.01 : w[2] > 0.99, "s gap = ", gap, ": ", w);
  }
}

void explodes(evidence& e) {
  numbers found;
  for (double const t : {1.0, 0.1, 0.05, 0.01}) found.push_back(norm_at(numbers{0, 0.5, 1}, t));
  e.refute(found[3] < 1e-15 && found[3] < found[2] && found[2] < found[1],
           "l = (0, 0.5, 1), T = 1, 0.1, 0.05, 0.01: |J| = ", found);
  e.confirm(close(norm_at(numbers{1, 1, 0}, 0.01), 50, 1e-9),
            "the worst case over l does grow: a tie at T = 0.01 has |J| = 50");
}

void decouples(evidence& e) {
  numbers found;
  for (double const t : {1.0, 0.1}) {
    auto const l = analysis::tempered(numbers{0, 0.01 * t, -5}, t);
    found.push_back(analysis::spectral_norm(analysis::jacobian(attune::normalizer::sparsemax{}, l)) / t);
  }
  e.refute(close(found[1], 10, 1e-9), "two keys in the support of sparsemax(l / T), T = 1, 0.1: |J| = ", found,
           ", twice softmax's worst 1 / (2 T)");
  e.on_random("sparsemax(l / T): |J| is 1 / T with two or more keys in the support, 0 with one", [](rng& draw) {
    double const t = draw.uniform(0.05, 2);
    auto const l = analysis::tempered(draw.normals(draw.between(2, 7)), t);
    int support = 0;
    for (double w : analysis::weights(attune::normalizer::sparsemax{}, l))
      if (w > 0) ++support;
    double const norm = analysis::spectral_norm(analysis::jacobian(attune::normalizer::sparsemax{}, l)) / t;
    return close(norm, support > 1 ? 1 / t : 0, 1e-9);
  });
}

void self_adjusted(evidence& e) {
  using namespace attune::normalizer;
  numbers found;
  for (double const size : {1.0, 10.0, 100.0})
    found.push_back(analysis::spectral_norm(analysis::jacobian(
        attune::normalizer::self_adjusted<adjusted_form::product>{}, numbers{size, size - 0.01, 0})));
  e.refute(found[2] > 40, "w = x softmax(x), |x| about 1, 10, 100: |J| = ", found);
  numbers narrow;
  for (double const range : {1.0, 1e-2, 1e-4})
    narrow.push_back(analysis::spectral_norm(analysis::jacobian(
        attune::normalizer::self_adjusted<adjusted_form::full_range>{}, numbers{range, range / 2, 0})));
  e.refute(narrow[2] > 1000,
           "divided by the range of the logits, l = (r, r / 2, 0), r = 1, 0.01, 0.0001: |J| = ", narrow);
}

void gpt2(evidence& e) {
  e.note("a critical N of 0.06 L, saturation at 70 to 85 % and T < 0.1 need GPT-2's weights");
  e.note("Figure 4 compares with a bound that does not hold (L15, L16)");
}

/// |alpha_i x_i - s| <= xi_i for keys on a sphere and their own least distance.
bool xi_holds(rng& draw) {
  index_t const keys = draw.between(2, 10), width = draw.between(2, 6);
  numbers const x = draw.sphere(keys, width), alpha = softmax(draw.normals(keys, 2));
  index_t const selected = draw.between(1, keys);
  numbers const y = analysis::weighted(alpha, points(x, width));
  auto const s = analysis::select(points(y, width), analysis::largest(alpha, selected));
  numbers heaviest;
  for (index_t i : s.chosen) heaviest.push_back(alpha[std::size_t(i)]);
  auto const b = analysis::bound_separability(
      heaviest, analysis::sphere<double>{1, analysis::least_distance(points(x, width)), width}, 1.0);
  for (std::size_t n = 0; n < heaviest.size(); ++n)
    if (!at_most(s.chosen_distance[n], b.spread[n])) return false;
  return true;
}

void assumptions(evidence& e) {
  e.on_random("32 points on a circle are never further apart than 2 sin(pi / 32)", [](rng& draw) {
    numbers const x = draw.sphere(32, 2);
    return at_most(analysis::least_distance(points(x, 2)), 2 * std::sin(3.14159265358979 / 32));
  });
  // What a fixed delta would be: the least distance over independent draws, at more and more keys.
  numbers smallest, typical;
  for (index_t const keys : {8, 32, 128}) {
    numbers found;
    for (std::uint64_t n = 0; n < 100; ++n) {
      rng draw(n + 1);
      numbers const x = draw.sphere(keys, 3);
      found.push_back(analysis::least_distance(points(x, 3)));
    }
    std::sort(found.begin(), found.end());
    smallest.push_back(found.front());
    typical.push_back(found[found.size() / 2]);
  }
  e.confirm(smallest[2] < smallest[0] / 5 && typical[2] < typical[0] / 5 && smallest[2] < typical[2] / 5,
            "uniform on the sphere in 3 dimensions, 8, 32, 128 keys, 100 draws each: the median least distance is ",
            typical, ", the smallest ", smallest);
  e.note("the least distance varies between draws and falls with L, so no delta > 0 fits them all");
  e.on_random(
      "with the least distance of the draw itself, xi of (12) bounds |alpha_i x_i - s|, so the lower bound of Theorem "
      "2 holds",
      xi_holds);
  e.note("our upper bound (L11b) is for independent keys");
}

void boundary(evidence& e) {
  rng draw(2);
  numbers const x = draw.sphere(12, 3), alpha = softmax(draw.normals(12));
  numbers const y = analysis::weighted(alpha, points(x, 3));
  auto const s = analysis::select(points(y, 3), analysis::largest(alpha, 4));
  double const r = analysis::separation_radius(s);
  int on = 0, open = 0;
  for (double d : s.rest_distance) {
    if (d <= r) ++on;
    if (d < r) ++open;
  }
  e.refute(on == 1, "random keys: ", on, " key that was not selected lies in the closed ball of that radius");
  e.confirm(open == 0, "no such key lies in the open ball");
}

void pairs(evidence& e) {
  numbers const alpha(8, 0.125), x(8, 1.0);
  auto const b = analysis::bound_separability(alpha, analysis::sphere<double>{1, 0, 1}, 1.0);
  numbers const y = analysis::weighted(alpha, points(x, 1));
  double const distance = analysis::select(points(y, 1), {0, 1, 2, 3, 4, 5, 6, 7}).chosen_distance[0];
  e.confirm(close(b.spread[0], distance), "8 equal keys: over ordered pairs xi = ", b.spread[0],
            ", |alpha_i x_i - s| = ", distance);
  double squares = 0, pairs_once = 0;  // (12) over unordered pairs, M = 1, delta = 0
  for (int j = 1; j < 8; ++j) {
    squares += alpha[std::size_t(j)] * alpha[std::size_t(j)];
    for (int k = 1; k < j; ++k) pairs_once += alpha[std::size_t(j)] * alpha[std::size_t(k)];
  }
  double const unordered = std::sqrt(squares + pairs_once);
  e.refute(unordered < distance, "over unordered pairs xi = ", unordered, ", which is no bound");
  e.on_random("over ordered pairs, both different from i, xi bounds |alpha_i x_i - s|", xi_holds);
}

}  // namespace

std::vector<claim> limits_gradient_claims() {
  using enum status;
  return {
      {"L13", "2.3", "|alpha1 - alpha2| is about sqrt(2) eps / T for the swapped pair", incorrect,
       "It is about 3 sqrt(2) / 4 eps / T", swapped_pair, true},
      {"L14", "Lemma 2", "|J|_2 <= |F'| (1 / (L min F) + max F / (L min F)^2)", incorrect,
       "This bounds every entry. The norm has |J|_2 <= |F'| sqrt(L) |alpha| / sum F, since J = (I - alpha 1^T) "
       "diag(F') / sum F.",
       lemma2, true},
      {"L15", "Lemma 2", "|J|_2 <= sqrt(2)", incorrect,
       "sqrt(2) bounds |alpha1 - alpha2|: g(T, eps) <= min(1 / (2 T), sqrt(2) / eps)", sqrt2, true},
      {"L16", "Corollary 3", "|J|_2 <= min(1 / (4 T), sqrt(2)) for softmax", incorrect,
       "The bound is 1 / (2 T), and it is attained. 1 / (4 T) bounds the entries.", corollary3, true},
      {"L17", "contributions 3", "Lemma 2 specialized to softmax recovers 1 / (4 T)", incorrect, "", recovers},
      {"L18", "4", "H heads cover 1 - (1 - p)^H; p = 0.8 needs 3 for 99 %", conditional,
       "This holds for independent heads", heads, true},
      {"L19", "4", "Scaling logits by log L keeps the maximum weight roughly constant", conditional,
       "This holds for s gap = 1, see P08", scalable},
      {"L20", "2.3, 4", "Lower T makes the Jacobian explode", conditional,
       "This holds in the worst case over l, which is a tie. At a fixed l without ties the Jacobian vanishes.",
       explodes},
      {"L21", "4", "Sparsemax decouples selectivity from gradient health", incorrect,
       "The norm of its Jacobian is 1 / T on any support of two or more keys", decouples, true},
      {"L22", "4", "Self-adjusted softmax keeps the Jacobian spectrum in a healthy band", incorrect, "", self_adjusted},
      {"L23", "3", "Statements about GPT-2", undecidable, "", gpt2},
      {"L24", "Assumptions 1, 2", "Keys are uniform on the sphere and their least distance is delta", inconsistent,
       "Delta is the least distance of the keys that were drawn: xi and the lower bound hold with it", assumptions,
       true},
      {"L25", "3.2",
       "With r the least distance of a key that was not selected, all of them lie outside the closed ball", incorrect,
       "They lie outside the open ball. The nearest one lies on its boundary.", boundary},
      {"L26", "(12)", "The sum over j != k != i in xi", conditional,
       "The sum is over ordered pairs, both different from i", pairs, true},
  };
}

}  // namespace ledger
