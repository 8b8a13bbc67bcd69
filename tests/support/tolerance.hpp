// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How far a backend may be from the exact result: the one home of run-time tolerances.
//
// First-order error analysis of one row, with the exact logits a, weights w and ground weight w0 of the reference.
// eps is the spacing of the backend's numbers at 1 (2^-23, 2^-52); every term below is a relative error of e^a.
//
//   delta_j   what rounding does to logit a_j:
//             f * cap' * (n(D) |c| sum_d |q_d k_jd|        contraction, f: length-scale factor, cap': slope of the softcap
//                         + 2 |slope * distance|)          additive term
//             + 3 f |s_j| + 3 kappa |gamma| + 3 b_j        pointwise steps: each rounds a few times (|gamma| <= 32, see below)
//             + n(Dg) sp(beta) sigma(-g) sum_d |gq_d gk_jd|    contraction of the gate
//             + |log w_j|                                  argument of the exponential, relative to the row's log mass
//             all times eps
//   tau       what rounding does to the ground level (sink logit, gamma, the 1 of off-by-one) relative to the keys
//   rho       4 + n(K) times eps: exponential, division, sums over K keys
//   U         sum_j w_j delta_j + G tau + rho: relative error of the normaliser; G: the share that depends on the ground level
//
//   |w_j|   w_j (delta_j + U + rho)
//   |out_d| sum_j |w_j bound| |v_jd| + |v0_d| (w0 bound + eps w0)
//   |w0|    sinks: w0 (sum w delta + (1 - w0) tau + rho + eps |log w0|);
//           grounded: the same + sum of w_j delta_j over the keys below gamma (F = sum e^gamma - e^a is a difference)
//   |lse|   U + eps (|lse| + kappa |gamma|)
//
// Each is multiplied by C. n(K) = max(sqrt K, K / 2C): rounding errors of a sum of K terms stay below K eps / 2, and that is
// what C n(K) eps allows a long sum (many equal terms do reach it: saturated softcaps); short ones have the room of a random
// walk. A gamma that is no score's neighbour makes kappa gamma a row constant, which touches lse only: weights must not pay
// for a huge gamma. Where the bound of one weight is not small, expm1 continues it beyond first order.
#pragma once

#include <cmath>
#include <sstream>
#include <string>

#include "problems.hpp"

namespace attune::test {

struct accuracy {
  double eps;   ///< spacing at 1
  double tiny;  ///< smallest normal number: results below may be flushed
  double c;     ///< multiple of the first-order bound

  /// What a sum of n terms loses, in eps and divided by c.
  double terms(index n) const { return std::fmax(std::sqrt(static_cast<double>(n)), static_cast<double>(n) / (2 * c)); }
};

/// The table. One C for all operators: their differences are in the condition, not in the constant. In 200,000 random problems
/// the worst error / bound is 0.5, SSE2 and AVX2 alike: room for other instruction sets and compilers. Near 1 come only rows
/// of 2000 keys with equal logits, by the sequential sum of the double reference (n(K) is exact there).
inline accuracy accuracy_of(backend b) {
  switch (b) {
    case backend::cpu_float:
      return {0x1p-23, 0x1p-126, 4};
    case backend::cpu_double:
    case backend::reference_double:
      return {0x1p-52, 0x1p-1022, 4};
    case backend::reference_50:
      return {0x1p-52, 0x1p-1022, 4};  // its own error is nil, but it is compared with the double reference
  }
  return {0, 0, 0};
}

struct bounds {
  array out, lse, ground_weight;
};

namespace detail {
inline double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
inline double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
inline double abs_dot(array const& x, array const& y, index heads, index b, index h, index i, index j) {
  double sum = 0;
  for (index d = 0; d < x.shape[3]; ++d) sum += std::fabs(element(x, heads, b, h, i, d) * element(y, heads, b, h, j, d));
  return sum;
}
inline double dot(array const& x, array const& y, index heads, index b, index h, index i, index j) {
  double sum = 0;
  for (index d = 0; d < x.shape[3]; ++d) sum += element(x, heads, b, h, i, d) * element(y, heads, b, h, j, d);
  return sum;
}
inline double product(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }  // 0 * inf = 0: a limit reached
inline double finite_or_zero(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
}  // namespace detail

/// The bounds of every element; `reference` is a reference backend's result for p (its scores, logits and weights are read).
inline bounds bounds_of(entry const& e, problem const& p, dimensions const& n, result const& reference, accuracy const& a) {
  policies const what = policies_of(e);
  bounds bound{make_array(reference.out.shape), make_array(reference.lse.shape), make_array(reference.ground_weight.shape)};
  auto const tensor = [&](char const* name) {
    auto const found = p.tensors.find(name);
    return found == p.tensors.end() ? nullptr : &found->second;
  };
  array const *q = tensor("q"), *k = tensor("k"), *v = tensor("v"), *v0 = tensor("v0"), *scores = tensor("scores");
  array const *gate_q = tensor("gate_q"), *gate_k = tensor("gate_k"), *gates = tensor("gates");
  index const offset = p.offset.value_or(n.keys - n.queries);
  std::vector<double> delta(to_size(n.keys)), weight(to_size(n.keys));

  for (index b = 0; b < n.batch; ++b)
    for (index h = 0; h < n.heads; ++h)
      for (index i = 0; i < n.queries; ++i) {
        auto const row = [&](char const* name, double fallback) { return parameter(p, name, n.heads, b, h, i, fallback); };
        auto const at = [&](array const& x, index j) { return element(x, n.heads, b, h, i, j); };
        index const count = visible_count(p, n, b, h, i);
        double const log_count = count > 0 ? std::log(static_cast<double>(count)) : 0;
        double const gamma = row("gamma", 0), gate = detail::softplus(row("beta", 0));
        double const kappa = what.length_scale == "margin" ? detail::softplus(row("alpha", 0)) * log_count : 0;
        double const shift = kappa * detail::finite_or_zero(gamma);
        double const factor = what.length_scale == "margin" ? 1 + kappa
                              : what.length_scale == "ssmax"
                                  ? std::fabs(row("ss_scale", 1) * log_count) + std::fabs(row("ss_bias", 0))
                              : what.length_scale == "logn" ? log_count / std::fabs(std::log(row("length0", 512)))
                                                            : 1;
        double const c = what.given ? 0 : std::fabs(row("scale", 1 / std::sqrt(static_cast<double>(n.width))));

        for (index j = 0; j < n.keys; ++j) {
          double& error = delta[to_size(j)] = 0;
          double& w = weight[to_size(j)] = 0;
          double const logit = at(reference.logits, j);
          if (!visible(p, b, h, i, j) || !std::isfinite(logit)) continue;
          double const s = at(reference.scores, j);
          w = at(reference.weights, j);
          double slope_of_cap = 1, raw = 0;
          if (what.softcap) {
            double const t = s / row("cap", 30);
            slope_of_cap = std::fmax(1 - t * t, 0);
            if (scores) raw += 2 * detail::finite_or_zero(at(*scores, j));
          }
          if (q) raw += (a.terms(n.width) + 2) * c * detail::abs_dot(*q, *k, n.heads, b, h, i, j);
          if (what.alibi) raw += 2 * std::fabs(row("slope", 0) * static_cast<double>(i + offset - j));
          error = factor * (slope_of_cap * raw + 3 * std::fabs(s)) + (shift <= 32 * kappa ? 3 * shift : 0);
          if (what.gate != "none") {
            double const g = gates ? at(*gates, j) : detail::dot(*gate_q, *gate_k, n.heads, b, h, i, j);
            error += 3 * detail::product(gate, detail::softplus(-g));
            if (gate_q)
              error += (a.terms(n.gate_width) + 2) * gate * detail::sigmoid(-g) *
                       detail::abs_dot(*gate_q, *gate_k, n.heads, b, h, i, j);
          }
          if (w > 0) error += std::fabs(std::log(w));
          error *= a.eps;
        }

        double const w0 = reference.ground_weight.empty() ? 0 : element(reference.ground_weight, n.heads, b, h, i);
        double const rho = a.eps * (4 + a.terms(count));
        double tau = a.eps * shift;
        if (what.sink()) tau += a.eps * 2 * detail::finite_or_zero(row("sink", 0));
        if (what.grounded()) tau = a.eps * 2 * (1 + kappa) * detail::finite_or_zero(gamma);
        double keys = 0, below = 0, ground = w0;  // sum w delta; the same over keys below gamma; share of the ground level
        for (index j = 0; j < n.keys; ++j) {
          double const w = weight[to_size(j)], error = delta[to_size(j)];
          keys += w * error;
          if (what.grounded() && w > 0 && at(reference.logits, j) < gamma + a.c * (error + tau))
            below += w * error, ground += w;
        }
        double const normaliser = keys + (ground > 0 ? std::fmin(ground, 1) * tau : 0) + rho;  // U
        double const flushed = 16 * a.tiny * static_cast<double>(count + 1);  // masses of keys below the normal range may be 0
        double w0_bound = 0;
        if (!reference.ground_weight.empty()) {
          double const change = what.grounded() ? ground * (1 - w0) : w0 * (1 - w0);
          w0_bound = a.c * (w0 * (keys + rho) + change * tau + below) + flushed;
          if (w0 > 0) w0_bound += a.c * a.eps * w0 * std::fabs(std::log(w0));
          element(bound.ground_weight, n.heads, b, h, i) = w0_bound;
        }
        if (!reference.lse.empty()) {
          double const lse = element(reference.lse, n.heads, b, h, i);
          element(bound.lse, n.heads, b, h, i) = a.c * (normaliser + a.eps * (detail::finite_or_zero(lse) + 2 * shift));
        }
        for (index d = 0; d < n.value_width; ++d) {
          double& sum = element(bound.out, n.heads, b, h, i, d);
          if (v0) sum = std::fabs(element(*v0, n.heads, b, h, i, d)) * (w0_bound + a.c * a.eps * w0) + a.tiny;
        }
        for (index j = 0; j < n.keys; ++j) {
          if (!visible(p, b, h, i, j)) continue;
          double const w = weight[to_size(j)];
          double const relative = std::expm1(std::fmin(a.c * (delta[to_size(j)] + normaliser + rho), 50));
          double const error = w * relative + 16 * a.tiny;
          for (index d = 0; d < n.value_width; ++d) {
            double const x = element(*v, n.heads, b, h, j, d);
            if (w > 0 || std::isfinite(x)) element(bound.out, n.heads, b, h, i, d) += error * std::fabs(x) + a.tiny;
          }
        }
      }
  return bound;
}

/// The largest error / bound of a comparison, and in words what failed (empty: nothing).
struct comparison {
  double worst = 0;
  std::string failure;
};

/// Non-finite expectations have to be met exactly (NaN by any NaN), finite ones within the bound.
inline void compare(char const* what, array const& got, array const& expected, array const& bound, comparison& all) {
  if (got.shape != expected.shape || got.data.size() != expected.data.size()) {
    all.failure += std::string(what) + ": wrong shape\n";
    return;
  }
  double worst = 0;
  std::size_t where = 0, failures = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    double const x = got.data[i], y = expected.data[i];
    bool const same = x == y || (std::isnan(x) && std::isnan(y));
    double const ratio = same ? 0 : std::isfinite(y) ? std::fabs(x - y) / bound.data[i] : infinity;
    if (!(ratio <= 1)) ++failures;
    if (!(ratio <= worst) && !std::isnan(worst)) worst = ratio, where = i;
  }
  if (!(worst <= all.worst)) all.worst = worst;
  if (failures == 0) return;
  std::ostringstream text;
  text.precision(17);
  text << what << '[';
  std::size_t rest = where;
  std::vector<std::size_t> axis;
  for (std::size_t i = got.shape.size(); i-- > 0; rest /= to_size(got.shape[i])) axis.push_back(rest % to_size(got.shape[i]));
  for (std::size_t i = axis.size(); i-- > 0;) text << axis[i] << (i ? "," : "]");
  text << " got " << got.data[where] << ", expected " << expected.data[where] << ", error / bound " << worst << "; " << failures
       << " of " << got.data.size() << " elements fail\n";
  all.failure += text.str();
}

inline comparison compare(result const& got, result const& expected, bounds const& bound) {
  comparison all;
  compare("out", got.out, expected.out, bound.out, all);
  compare("lse", got.lse, expected.lse, bound.lse, all);
  compare("ground weight", got.ground_weight, expected.ground_weight, bound.ground_weight, all);
  return all;
}

/// What a failure message says about the case: enough to repeat it.
inline std::string describe(entry const& e, backend b, dimensions const& n, std::string const& mask, std::uint64_t seed) {
  std::ostringstream text;
  text << e.name << " on " << instances::name(b) << ", case seed " << seed << ", mask " << mask << ", B " << n.batch << ", H "
       << n.heads << '/' << n.key_heads << '/' << n.value_heads << ", Lq " << n.queries << ", Lk " << n.keys << ", D "
       << n.width << ", Dv " << n.value_width << '\n';
  return text.str();
}

/// Whether two results agree bit for bit (NaN with NaN).
inline bool same_bits(array const& x, array const& y) {
  if (x.shape != y.shape || x.data.size() != y.data.size()) return false;
  for (std::size_t i = 0; i < x.data.size(); ++i)
    if (!(x.data[i] == y.data[i] && std::signbit(x.data[i]) == std::signbit(y.data[i])) &&
        !(std::isnan(x.data[i]) && std::isnan(y.data[i])))
      return false;
  return true;
}
inline bool same_bits(result const& x, result const& y) {
  return same_bits(x.out, y.out) && same_bits(x.lse, y.lse) && same_bits(x.ground_weight, y.ground_weight);
}

}  // namespace attune::test
