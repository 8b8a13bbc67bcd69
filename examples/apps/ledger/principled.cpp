// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Principled Attention.
#include <algorithm>
#include <limits>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <attune/analysis/length_law.hpp>
#include <attune/policies/gate/softplus.hpp>
#include <attune/policies/length_scale/margin.hpp>
#include <attune/policies/normalizer/grounded.hpp>

#include "common.hpp"

namespace ledger {
namespace {

using digits = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400>, boost::multiprecision::et_off>;
constexpr double off = -std::numeric_limits<double>::infinity();

struct settings {
  double alpha = off, beta = off, gamma = off;
};
template <class T>
struct grounded_row {
  std::vector<T> logits, weights;  ///< true logits, row constant included
  T ground, lse;
};

/// The mechanism by its policies. No gate scores: no gate.
template <class T = double>
grounded_row<T> principled(numbers const& s, numbers const& g, settings const& at) {
  using namespace attune;
  row<T> r{};
  r.visible = r.keys = T(double(s.size()));
  r.log_visible = math::log(r.visible);
  auto const scale = length_scale::margin{.alpha = at.alpha, .gamma = at.gamma}.bind(r);
  auto const gate = gate::softplus{at.beta}.bind(r);
  T const shift = scale.row_constant();
  detail::visible_keys<T> keys;
  for (std::size_t j = 0; j < s.size(); ++j) {
    T a = scale.scale(T(s[j]));
    if (!g.empty()) a = gate.gate(a, T(g[j]));
    keys.keys.push_back(index_t(j));
    keys.logits.push_back(a);
  }
  r.logit_shift = shift;
  auto const w = detail::weigh<normalizer::grounded>(normalizer::grounded{at.gamma}.bind(r), keys, r.visible);
  grounded_row<T> result{{}, w.weights, w.ground_weight, T(w.lse + shift)};
  for (T const& a : keys.logits) result.logits.push_back(a + shift);
  return result;
}

settings random_settings(rng& draw) { return {draw.normal(), draw.normal(), draw.normal()}; }

void ground_weight(evidence& e) {
  e.on_random("w0 = 1 - sum w = sum max(0, e^gamma - e^a) / z, in [0, 1]", [](rng& draw) {
    index_t const n = draw.between(1, 20);
    settings const at = random_settings(draw);
    auto const r = principled(draw.normals(n, 3), draw.normals(n, 3), at);
    double shortfall = 0, z = 0;
    for (double a : r.logits) {
      shortfall += std::fmax(0, std::exp(at.gamma) - std::exp(a));
      z += std::exp(std::fmax(at.gamma, a));
    }
    return close(r.ground, 1 - analysis::sum(r.weights), 1e-12) && close(r.ground, shortfall / z, 1e-12) &&
           r.ground >= 0 && r.ground <= 1;
  });
}

void indifference(evidence& e) {
  double const found = attune::math::softplus(0.0) * std::log(2.0);
  e.confirm(close(found, 0.48045301391820144), "softplus(0) log 2 = ", found);
  e.note("this is the penalty relative to g = +inf");
  e.note("relative to g = 20 it is the same to 2e-9");
}

void recovers_softmax(evidence& e) {
  numbers const s{0.3, -0.7, 1.1, 0.2}, g(4, 0.4);
  numbers const p = softmax(s);
  double const z = analysis::log_sum_exp(s);
  struct path {
    char const* name;
    double (*gamma)(double);
    bool logits_converge;
  };
  for (path const& way : {path{"gamma = -t", [](double t) { return -t; }, true},
                          path{"gamma = -e^t", [](double t) { return -std::exp(t); }, false},
                          path{"gamma = -e^2t", [](double t) { return -std::exp(2 * t); }, false}}) {
    double worst = 0, ground = 0, logit = 0, lse = 0;
    auto const r = principled<digits>(s, g, {-60, -60, way.gamma(60)});
    for (std::size_t j = 0; j < 4; ++j) {
      worst = std::fmax(worst, std::fabs(double(r.weights[j]) - p[j]));
      logit = std::fmax(logit, std::fabs(double(digits(r.logits[j] - digits(s[j])))));
    }
    ground = double(r.ground);
    lse = std::fabs(double(digits(r.lse - digits(z))));
    e.confirm(worst < 1e-15 && ground < 1e-15, way.name, ", alpha = beta = -60: |w - softmax| and w0 below 1e-15");
    if (way.logits_converge)
      e.confirm(logit < 1e-20 && lse < 1e-15, "|a - s| below 1e-20");
    else
      e.refute(logit > 1, "max |a - s| = ", logit, ", |lse - log sum e^s| = ", lse);
  }
}

void gate_regimes(evidence& e) {
  using attune::math::softplus;
  e.confirm(softplus(-20.0) < 3e-9 && softplus(20.0) - 20 < 3e-9, "softplus(-20) = ", softplus(-20.0),
            ", softplus(20) - 20 = ", softplus(20.0) - 20);
  e.confirm(close(softplus(0.0), std::log(2.0)), "softplus(0) = log 2");
}

void above_threshold(evidence& e) {
  e.on_random("all logits at or above gamma: w0 = 0 and w = softmax(a)", [](rng& draw) {
    numbers const s = draw.uniforms(draw.between(1, 12), 0.5, 4);
    auto const r = principled(s, {}, {draw.normal(), off, 0.5});
    return r.ground == 0 && largest_difference(r.weights, softmax(r.logits)) < 1e-14;
  });
  e.confirm(principled(numbers{0.5, 2, 3}, {}, {off, off, 0.5}).ground == 0, "a = gamma exactly: w0 = 0");
  e.note("the threshold acts on the final logit a, after amplification and gate");
}

void kink(evidence& e) {
  auto const ground = [](double a) { return principled(numbers{a, 1.5}, {}, {off, off, 1.0}).ground; };
  double const h = 1e-6, left = (ground(1 - h) - ground(1 - 2 * h)) / h,
               right = (ground(1 + 2 * h) - ground(1 + h)) / h;
  e.refute(left < -0.37 && right == 0, "dw0/da = ", left, " just below gamma = 1, ", right,
           " just above: continuous, not smooth");
  e.on_random("w0 falls as a rises and is continuous at gamma", [&](rng& draw) {
    double const a = draw.uniform(-3, 3), b = a + draw.uniform(0, 1);
    return ground(b) <= ground(a) && ground(1 - 1e-9) < 1e-8;
  });
}

void unit_mass(evidence& e) {
  rng draw(7);
  for (double const sigma : {0.1, 1.0, 2.0}) {
    double mean = 0;
    int const n = 200000;
    for (int i = 0; i < n; ++i) mean += std::exp(sigma * draw.normal()) / n;
    double const expected = std::exp(sigma * sigma / 2);
    if (sigma < 0.5)
      e.confirm(close(mean, expected, 0.01) && close(mean, 1, 0.02), "sigma = ", sigma, ": mean e^s = ", mean);
    else
      e.refute(close(mean, expected, 0.05) && mean > 1.5, "logits of deviation ", sigma, ": mean e^s = ", mean,
               ", e^(sigma^2/2) = ", expected);
  }
  e.note("section 3.1 has no 1/sqrt(d): there sigma^2 = d");
}

void length_invariance(evidence& e) {
  double const margin = 1;
  for (double const c : {0.5, 1.0, 1.5}) {
    attune::length_scale::margin const law{.alpha = std::log(std::expm1(c)), .gamma = 0};
    numbers w;
    for (index_t const keys : {10, 1000, 1000000}) w.push_back(analysis::leading_weight(law, keys, margin));
    if (c == 1.0)
      e.confirm(std::fabs(w[2] - w[1]) < 1e-3 && close(w[2], 1 / (1 + std::exp(-margin)), 1e-5), "c m = 1: w = ", w,
                " at K = 10, 10^3, 10^6");
    else
      e.refute(c < 1 ? w[2] < 0.01 : w[2] > 0.999, "c m = ", c * margin, ": w = ", w);
  }
  e.on_random("w = 1 / (1 + (K - 1) K^(-c m) e^(-m))", [](rng& draw) {
    double const c = draw.uniform(0.1, 3), m = draw.uniform(0, 3);
    index_t const keys = draw.between(1, 100000);
    attune::length_scale::margin const law{.alpha = std::log(std::expm1(c)), .gamma = 0};
    double const k = double(keys), w = 1 / (1 + (k - 1) * std::pow(k, -c * m) * std::exp(-m));
    return close(analysis::leading_weight(law, keys, m), w, 1e-10);
  });
}

void ordering(evidence& e) {
  e.on_random("without a gate, weights have the same order as scores", [](rng& draw) {
    numbers const s = draw.normals(6);
    auto const r = principled(s, {}, {draw.normal(), off, draw.normal()});
    for (std::size_t a = 0; a < 6; ++a)
      for (std::size_t b = 0; b < 6; ++b)
        if (s[a] > s[b] && !(r.weights[a] >= r.weights[b])) return false;
    return true;
  });
  auto const r = principled(numbers{2, 1}, numbers{-5, 5}, {0, 0, 0});
  e.refute(r.weights[0] < r.weights[1], "the final logit: s = (2, 1), g = (-5, 5): w = ", r.weights);
}

void gate_reduces(evidence& e) {
  double raised = 0;
  e.on_random("lowering a key's g never raises its own weight", [&](rng& draw) {
    numbers const s = draw.normals(6), g = draw.normals(6);
    numbers lowered = g;
    lowered[0] -= 1;
    auto const before = principled(s, g, {0, 0.3, -9}), after = principled(s, lowered, {0, 0.3, -9});
    for (std::size_t j = 1; j < 6; ++j) raised = std::fmax(raised, after.weights[j] - before.weights[j]);
    return after.weights[0] <= before.weights[0];
  });
  e.refute(raised > 0.05, "the weight of another key rose by ", raised, ": above gamma keys share a normalizer");
}

void orthogonal(evidence& e) {
  numbers plain, amplified;
  for (std::size_t const keys : {4u, 64u, 1024u}) {
    plain.push_back(principled(numbers(keys, -0.2), {}, {off, off, 0}).ground);
    amplified.push_back(principled(numbers(keys, -0.2), {}, {0, off, 0}).ground);
  }
  e.refute(close(plain[0], plain[2]) && amplified[2] > amplified[0] + 0.3,
           "K keys of s = -0.2, gamma = 0, K = 4, 64, 1024: w0 = ", plain, " without amplification, ", amplified,
           " with amplification: it moves ground mass, and gamma is its pivot");
}

void recipe(evidence& e) {
  float const small = -1e-6f;
  float const sumexp = 3 + std::exp(small), groundexp = 4;
  float const difference = (groundexp - sumexp) / groundexp, shortfall = -std::expm1(small) / groundexp;
  e.refute(std::fabs(difference / 2.5e-7f - 1) > 0.03,
           "float, a = (0, 0, 0, -1e-6), gamma = 0: (groundexp - sumexp) / groundexp = ", double(difference),
           ", exact 2.5e-7");
  e.confirm(std::fabs(shortfall / 2.5e-7f - 1) < 1e-5, "with expm1: ", double(shortfall));
  e.refute(std::isinf(std::exp(0.0f - -200.0f)),
           "rescaling by max a alone, a = -200, gamma = 0: e^(gamma - m) overflows, so m must be at least gamma");
  e.on_random("the policy in float against double, relative to w0", [](rng& draw) {
    numbers s = draw.normals(4, 1e-3);
    numbers rounded;
    std::vector<float> narrow;
    for (double x : s) {
      narrow.push_back(float(x));
      rounded.push_back(double(float(x)));
    }
    auto const wide = analysis::weigh(attune::normalizer::grounded{0.0}, rounded);
    auto const f = analysis::weigh(attune::normalizer::grounded{0.0}, narrow);
    return std::fabs(double(f.ground_weight) - wide.ground_weight) <= 1e-6 * wide.ground_weight;
  });
}

void one_accumulator(evidence& e) {
  e.on_random("(m, sumexp, shortfall) of two parts merge to the values of the row", [](rng& draw) {
    index_t const n = draw.between(2, 40), cut = draw.between(0, n);
    double const gamma = draw.normal();
    numbers const a = draw.normals(n, 2);
    struct state {
      double m, sum, shortfall;
    };
    auto const accumulate = [&](index_t first, index_t last) {
      state s{gamma, 0, 0};
      for (index_t j = first; j < last; ++j) s.m = std::fmax(s.m, a[std::size_t(j)]);
      for (index_t j = first; j < last; ++j) {
        double const x = a[std::size_t(j)];
        s.sum += std::exp(x - s.m);
        s.shortfall += std::exp(gamma - s.m) * -std::expm1(std::fmin(x - gamma, 0));
      }
      return s;
    };
    state const x = accumulate(0, cut), y = accumulate(cut, n);
    double const m = std::fmax(x.m, y.m), sum = x.sum * std::exp(x.m - m) + y.sum * std::exp(y.m - m),
                 shortfall = x.shortfall * std::exp(x.m - m) + y.shortfall * std::exp(y.m - m);
    auto const whole = analysis::weigh(attune::normalizer::grounded{gamma}, a);
    return close(shortfall / (sum + shortfall), whole.ground_weight) && close(m + std::log(sum + shortfall), whole.lse);
  });
}

void best_key(evidence& e) {
  double largest = 0;
  e.on_random("a < gamma: w <= e^(a - gamma) / K < 1 / K", [&](rng& draw) {
    index_t const n = draw.between(1, 30);
    auto const r = principled(draw.normals(n, 2), draw.normals(n, 2), {0.2, 0.1, 0.5});
    for (std::size_t j = 0; j < r.logits.size(); ++j) {
      if (!(r.logits[j] < 0.5)) continue;
      largest = std::fmax(largest, r.weights[j] * double(n));
      if (!at_most(r.weights[j], std::exp(r.logits[j] - 0.5) / double(n)) || !(r.weights[j] * double(n) < 1))
        return false;
    }
    return true;
  });
  e.note("largest K w of a key below gamma: ", largest);
}

void initialization(evidence& e) {
  rng draw(3);
  numbers const s = draw.normals(16), p = softmax(s);
  double const at5 = largest_difference(principled(s, numbers(16, 0.0), {-5, -5, -5}).weights, p),
               at20 = largest_difference(principled(s, numbers(16, 0.0), {-20, -20, -20}).weights, p);
  e.refute(at5 > 1e-4, "alpha = beta = gamma = -5: max |w - softmax| = ", at5,
           ": no finite parameters give softmax exactly");
  e.confirm(at20 < 1e-6, "at -20: ", at20);
  e.confirm(largest_difference(principled(s, numbers(16, 0.0), {}).weights, p) < 1e-15, "at -inf it is softmax");
}

void visible_count(evidence& e) {
  e.on_random("K_i = max(0, min(i + o, Lk - 1) - max(0, i + o - W + 1) + 1) is the count", [](rng& draw) {
    index_t const queries = draw.between(1, 9), keys = draw.between(1, 9), window = draw.between(1, 9),
                  offset = keys - queries;
    for (index_t i = 0; i < queries; ++i) {
      index_t count = 0;
      for (index_t j = 0; j < keys; ++j)
        if (j <= i + offset && i + offset - j < window) ++count;
      if (count !=
          std::max(index_t(0), std::min(i + offset, keys - 1) - std::max(index_t(0), i + offset - window + 1) + 1))
        return false;
    }
    return true;
  });
  e.note("K = 0 occurs with more queries than keys, which the paper does not mention");
}

}  // namespace

std::vector<claim> principled_claims() {
  using enum status;
  return {
      {"P01", "3.2.1", "The ground weight is 1 - sum w = sum max(0, e^gamma - e^a) / z", holds, "", ground_weight},
      {"P02", "3.2.2", "An indifferent key is penalized by log(2)^2, about 0.48, at beta = 0", holds, "", indifference},
      {"P03", "3.3", "As alpha, beta, gamma go to -inf: a to s, z to sum e^s, w0 to 0", conditional,
       "w, o and w0 converge along every path. a, z and the lse converge only if softplus(alpha) |gamma| log K goes "
       "to 0. Otherwise the difference is constant along the row.",
       recovers_softmax},
      {"P04", "3.2.2", "softplus(-g) is about 0 for g >> 0, about |g| for g << 0, log 2 at 0", holds, "", gate_regimes},
      {"P05", "3.2.1",
       "Keys above the threshold contribute exactly their own mass; if all exceed it, the ground state receives none",
       holds, "", above_threshold},
      {"P06", "3.2.1", "The penalty increases smoothly as keys fall below gamma", incorrect,
       "The penalty is continuous and monotone, with a kink at gamma: the shortfall has slope -e^gamma on the left, 0 "
       "on the right",
       kink, true},
      {"P07", "2.3", "Irrelevant keys have scores near 0 and contribute about unit mass each", conditional,
       "This holds for logits of deviation sigma << 1. In general a key contributes e^(sigma^2 / 2).", unit_mass},
      {"P08", "abstract, 3.2.3", "The log K amplification restores scale invariance", conditional,
       "It gives a threshold law. With c = softplus(alpha) and m the margin, the weight goes to 1 for c m > 1, stays "
       "at e^m / (1 + e^m) for c m = 1, and goes to 0 for c m < 1.",
       length_invariance, true},
      {"P09", "3.2.3", "Amplification preserves the ordering of semantic relevance", conditional,
       "Amplification preserves the order of s. The gate may reverse the order of the final logits.", ordering, true},
      {"P10", "3.1, 3.2.2", "Gating can only reduce a key's claim on attention", conditional,
       "Gating reduces the key's own weight. Other keys above gamma gain weight.", gate_reduces, true},
      {"P11", "3", "The components are orthogonal, each solves exactly one problem", incorrect, "", orthogonal},
      {"P12", "5", "w0 = (groundexp - sumexp) / groundexp at the end of the loop, with the usual rescaling", incorrect,
       "Accumulate the shortfall by expm1, and let the running maximum start at gamma", recipe, true},
      {"P13", "5", "One extra row accumulator is enough for tiled online accumulation", holds, "", one_accumulator},
      {"P14", "3.2.1", "Being the best key is not enough: a key must clear gamma to keep its share", holds,
       "A key below gamma has a weight of less than 1 / K", best_key},
      {"P15", "abstract", "A strict generalization: a model can be initialized to equivalent behavior", conditional,
       "The model is equivalent in the limit, and exactly at -inf", initialization},
      {"P16", "5", "K is trivial for causal and sliding-window masks", holds, "", visible_count},
  };
}

}  // namespace ledger
