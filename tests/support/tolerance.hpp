// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How far a backend may be from the exact result: the one home of run-time tolerances.
//
// First-order error analysis of one row, with the exact logits a, weights w and ground weight w0 of the reference.
// eps is the spacing of the backend's numbers at 1 (2^-23, 2^-52).
//
//   delta_j   what rounding does to logit a_j:
//             f * cap' * (what it does to each term of the kernel: see score_errors)
//                 f: length-scale factor, cap': slope
//             + 3 f |s_j| + 3 kappa |gamma| + 3 b_j
//                 pointwise steps: each rounds a few times (|gamma| <= 32, see below)
//             + n(Dg) b'(g) sum_d |gq_d gk_jd|             contraction of the gate
//             all times eps
//   n(K)      what a sum of K terms loses: max(sqrt K, K / 2C). Rounding errors stay below K eps / 2, and that is what
//             C n(K) eps allows a long sum (many equal terms do reach it: saturated softcaps); short ones have the room
//             of a random walk
//   rho       (4 + n(K)) eps: exponential, division, sums over K keys
//
// Softmax, sinks, grounded: e^a relative to the row's log mass, so delta_j grows by eps |log w_j|.
//   tau       what rounding does to the ground level (sink logit, gamma, the 1 of off-by-one) relative to the keys
//   U         sum_j w_j delta_j + G tau + rho: relative error of the normaliser; G: the share that depends on the
//             ground level
//   |w_j|     w_j (delta_j + U + rho)
//   |w0|      sinks: w0 (sum w delta + (1 - w0) tau + rho + eps |log w0|);
//             grounded: the same + sum of w_j delta_j over the keys below gamma (F = sum e^gamma - e^a is a difference)
//   |lse|     U + eps (|lse| + kappa |gamma|)
// Affine: alpha times that of softmax, + p |d alpha| + the error of the share (average - alpha) / N on the plain sum of
// |v|. Self-adjusted: f_j = (a_j - low) / (high - low) times that of softmax, + p_j |d f_j|; f_j is summed as (a_j -
// max a) +
//             (max a - low), so both lengths count: the lowest key of a row has weight 0 only up to rounding. Sums
// without competition: w_j = F(a_j): |F'| delta_j; divided by K or by the sum; centred: - (sum F) / K^2 on the plain
// sum. Deformed exponentials: w_j = [1 + k (a_j - L)]_+^(1/k) at a_j +- dx, dx = delta_j + max over the support of
// delta
//             + eps (1 + max a - L): no derivative, it is infinite at the edge for k > 1; then divided by the sum,
//             whose error is that of all keys.
// Top-k:      softmax of the kept keys; two logits closer than their errors may change places: both then count with a
//             whole weight.
//
//   |out_d|   sum_j |w_j bound| |v_jd| + |plain bound| sum_j |v_jd| + |v0_d| (w0 bound + eps w0); a gate multiplies and
//             rounds.
//
// Each is multiplied by C. A gamma that is no score's neighbour makes kappa gamma a row constant, which touches lse
// only: weights must not pay for a huge gamma. Where the bound of one weight is not small, expm1 continues it beyond
// first order.
#pragma once

#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "problems.hpp"

namespace attune::test {

struct accuracy {
  double eps;   ///< spacing at 1
  double tiny;  ///< the least weight: results below may be 0
  double c;     ///< multiple of the first-order bound

  /// What a sum of n terms loses, in eps and divided by c.
  double terms(index n) const { return std::fmax(std::sqrt(static_cast<double>(n)), worst(n)); }
  /// The most that it can lose, n eps / 2, in the same units.
  double worst(index n) const { return static_cast<double>(n) / (2 * c); }
};

/// The table. One C for all operators: their differences are in the condition, not in the constant. In 200,000 random
/// problems the worst error / bound is 0.5, SSE2 and AVX2 alike: room for other instruction sets and compilers. Near 1
/// come only rows of 2000 keys with equal logits, by the sequential sum of the double reference (n(K) is exact there).
inline accuracy accuracy_of(backend b) {
  switch (b) {
    case backend::cpu_float:
      return {0x1p-23, 0x1p-96, 4};
    case backend::cpu_double:
    case backend::reference_double:
      return {0x1p-52, 0x1p-992, 4};
    case backend::reference_50:
      return {0x1p-52, 0x1p-992, 4};  // its own error is nil, but it is compared with the double reference
  }
  return {0, 0, 0};
}

struct bounds {
  array out, lse, ground_weight, threshold, average;
};

namespace detail {
inline double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
inline double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
inline double dot(array const& x, array const& y, index heads, index b, index h, index i, index j) {
  double sum = 0;
  for (index d = 0; d < x.shape[3]; ++d) sum += element(x, heads, b, h, i, d) * element(y, heads, b, h, j, d);
  return sum;
}
inline double product(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }  // 0 * inf = 0: a limit reached
inline double finite_or_zero(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
/// What a relative error of first order becomes.
inline double beyond_first_order(double x) { return std::expm1(std::fmin(x, 50)); }

/// What rounding does to the score of a pair, in eps, before a cap: the sum over the terms of the kernel.
class score_errors {
 public:
  score_errors(policies const& what, problem const& p, dimensions const& n, accuracy const& a) : p_(p), n_(n), a_(a) {
    for (std::string const& name : what.terms) terms_.push_back(error_of(name));
    composite_ = terms_.size() > 1 || what.softcap;
  }
  double operator()(index b, index h, index i, index j) const {
    double error = 0;
    for (term const& t : terms_) {
      estimate const one = t(b, h, i, j);
      error += one.error + (composite_ ? one.size : 0);  // sums of terms round too
    }
    return error;
  }

 private:
  /// Rounding in eps, and a bound of |term|.
  struct estimate {
    double error, size;
  };
  using term = std::function<estimate(index b, index h, index i, index j)>;

  array const* tensor(char const* name) const { return &p_.tensors.at(name); }
  array const* table(char const* name) const { return &p_.tables.at(name); }
  double row(char const* name, index b, index h, index i, double fallback) const {
    return parameter(p_, name, n_.heads, b, h, i, fallback);
  }
  double scale(index b, index h, index i) const {
    return std::fabs(row("scale", b, h, i, 1 / std::sqrt(static_cast<double>(n_.width))));
  }
  double distance(index i, index j) const {
    return static_cast<double>(i + p_.offset.value_or(n_.keys - n_.queries) - j);
  }

  /// factor(b, h, i) sum_d |f(x_id, y_jd, d)|, a sum of `width` terms that round `each` times themselves.
  template <class Factor, class Feature>
  term contraction(char const* x, char const* y, index each, Factor factor, Feature f) const {
    array const *left = tensor(x), *right = tensor(y);
    index const width = left->shape[3];
    return [=, this](index b, index h, index i, index j) {
      double sum = 0;
      for (index d = 0; d < width; ++d)
        sum += std::fabs(f(element(*left, n_.heads, b, h, i, d), element(*right, n_.heads, b, h, j, d), b, h, d));
      sum *= std::fabs(factor(b, h, i));
      return estimate{(a_.terms(width) + static_cast<double>(each)) * sum, sum};
    };
  }

  term error_of(std::string const& name) const {
    auto const by_scale = [this](index b, index h, index i) { return scale(b, h, i); };
    auto const by = [this](char const* parameter) {
      return [this, parameter](index b, index h, index i) { return 1 / row(parameter, b, h, i, 1); };
    };
    auto const product_of = [](double q, double k, index, index, index) { return q * k; };
    auto const square = [](double q, double k, index, index, index) { return (q - k) * (q - k); };
    if (name == "dot") return contraction("q", "k", 2, by_scale, product_of);
    if (name == "tempered_dot") return contraction("q", "k", 2, by("tau"), product_of);
    if (name == "rbf") return contraction("q", "k", 3, by("tau"), square);
    if (name == "l2") return contraction("q", "k", 3, by_scale, square);
    if (name == "scaled_rbf")
      return contraction(
          "q", "k", 3, [this](index b, index h, index i) { return row("rbf_gamma", b, h, i, 1); },
          [](double q, double k, index, index, index) { return k * (2 * q - k); });
    if (name == "inverse_distance") {
      term const squared = contraction("q", "k", 4, [](index, index, index) { return 1.; }, square);
      return [this, squared](index b, index h, index i, index j) {
        estimate const d = squared(b, h, i, j);
        double const sum = row("eps", b, h, i, 1) + d.size;
        return estimate{d.error / sum + 1, std::fabs(std::log(sum))};
      };
    }
    if (name == "bilinear" || name == "elliptical") {
      array const* const metric = table("metric");
      bool const distance_wanted = name == "elliptical";
      return contraction("q", "k", 4, by_scale, [=, this](double q, double k, index b, index h, index d) {
        double const m = element(*metric, n_.heads, b, h, 0, d);
        return distance_wanted ? m * (q - k) * (q - k) / 2 : m * q * k;
      });
    }
    if (name == "elementwise")
      return contraction(
          "q", "k", 3, [this](index b, index h, index i) { return row("scale", b, h, i, 1); },
          [](double q, double k, index, index, index) { return q - k; });
    if (name == "transformer_xl") {
      array const *u = table("bias_u"), *w = table("bias_w"), *r = table("relative"), *q = tensor("q");
      term const content = contraction("q", "k", 3, by_scale, [=, this](double x, double k, index b, index h, index d) {
        return (x + element(*u, n_.heads, b, h, 0, d)) * k;
      });
      return [=, this](index b, index h, index i, index j) {
        estimate e = content(b, h, i, j);
        index const n = i + p_.offset.value_or(n_.keys - n_.queries) - j + r->shape[2] / 2;
        double sum = 0;
        for (index d = 0; d < n_.width; ++d)
          sum += std::fabs((element(*q, n_.heads, b, h, i, d) + element(*w, n_.heads, b, h, 0, d)) *
                           element(*r, n_.heads, b, h, n, d));
        sum *= scale(b, h, i);
        return estimate{e.error + e.size + (a_.terms(n_.width) + 4) * sum, e.size + sum};
      };
    }
    if (name == "tupe") {
      auto const c = [this](index, index, index) { return 1 / std::sqrt(2 * static_cast<double>(n_.width)); };
      term const content = contraction("q", "k", 4, c, product_of),
                 position = contraction("position_q", "position_k", 4, c, product_of);
      return [=](index b, index h, index i, index j) {
        estimate const x = content(b, h, i, j), y = position(b, h, i, j);
        return estimate{x.error + y.error, x.size + y.size};
      };
    }
    if (name == "scalar_sort") return contraction("sort_q", "sort_k", 3, by("tau"), square);
    if (name == "scalar_laplacian" || name == "scalar_difference") {
      auto const difference = [](double q, double k, index, index, index) { return q - k; };
      if (name == "scalar_laplacian") return contraction("sort_q", "sort_k", 2, by("tau"), difference);
      array const *q = tensor("sort_q"), *k = tensor("sort_k");
      return [=, this](index b, index h, index i, index j) {
        double const size = std::fabs(element(*q, n_.heads, b, h, i) - element(*k, n_.heads, b, h, j));
        return estimate{size, size};
      };
    }
    if (name == "spatial_prior") {
      array const *center = tensor("center"), *spread = tensor("spread"), *place = tensor("place");
      return [=, this](index b, index h, index i, index j) {
        double sum = 0;
        for (index x = 0; x < n_.axes; ++x) {
          double const z = (element(*place, n_.heads, b, h, j, x) - element(*center, n_.heads, b, h, i, x)) /
                           element(*spread, n_.heads, b, h, i, x);
          sum += z * z;
        }
        sum /= row("spatial_beta", b, h, i, 1);
        return estimate{(a_.terms(n_.axes) + 5) * sum, sum};
      };
    }
    if (name == "fourier_prior") {  // angles are formed in double at least
      array const *cosine = table("cosine"), *sine = table("sine"), *frequency = table("frequency");
      return [=, this](index b, index h, index i, index j) {
        double size = 0, angles = 0;
        for (index r = 0; r < frequency->shape[2]; ++r) {
          double const amplitude =
              std::fabs(element(*cosine, n_.heads, b, h, r)) + std::fabs(element(*sine, n_.heads, b, h, r));
          size += amplitude;
          angles +=
              amplitude * (8 + std::fabs(element(*frequency, n_.heads, b, h, r)) * (8 + std::fabs(distance(i, j))));
        }
        return estimate{2 * size + angles * 0x1p-52 / a_.eps, size};
      };
    }
    if (name == "alibi")
      return [this](index b, index h, index i, index j) {
        double const size = std::fabs(row("slope", b, h, i, 0) * distance(i, j));
        return estimate{2 * size, size};
      };
    if (name == "given" || name == "bias" || name == "log_prior") {
      array const* const pairs = tensor(name == "given" ? "scores" : "bias");
      bool const logarithm = name == "log_prior";
      return [=, this](index b, index h, index i, index j) {
        double const x = element(*pairs, n_.heads, b, h, i, j), size = finite_or_zero(logarithm ? std::log(x) : x);
        return estimate{logarithm ? 3 * size : 0, size};
      };
    }
    if (name == "key_bias") {
      array const* const keys = tensor("key_bias");
      return [=, this](index b, index h, index, index j) {
        return estimate{0, std::fabs(element(*keys, n_.heads, b, h, j))};
      };
    }
    if (name == "relative_bias" || name == "t5_bias") {
      double largest = 0;
      for (double x : table("values")->data) largest = std::fmax(largest, std::fabs(x));
      return [largest](index, index, index, index) { return estimate{0, largest}; };
    }
    throw std::logic_error("no bound for the kernel term " + name);
  }

  problem const& p_;
  dimensions const& n_;
  accuracy a_;
  std::vector<term> terms_;
  bool composite_ = false;
};

/// One row while its bounds are made: logits, weights and errors of logits in, `bound` of weights out.
struct row_errors {
  index count = 0;          ///< visible keys
  std::vector<index> keys;  ///< visible keys with a weight that rounding can change
  std::vector<double> logit, weight, delta, bound;
  double w0 = 0, lse = 0, sum = 0;
  double w0_bound = 0, lse_bound = 0, threshold_bound = 0;
  double plain = 0;  ///< absolute error of what multiplies the plain sum of values

  void resize(index n) {
    for (std::vector<double>* x : {&logit, &weight, &delta, &bound}) x->assign(to_size(n), 0);
  }
};

/// log of sum e^a over the keys that `kept` names.
template <class Kept>
double log_sum(row_errors const& r, Kept kept) {
  double m = -infinity, sum = 0;
  for (index j : r.keys)
    if (kept(j)) m = std::fmax(m, r.logit[to_size(j)]);
  if (m == -infinity) return m;
  for (index j : r.keys)
    if (kept(j)) sum += std::exp(r.logit[to_size(j)] - m);
  return m + std::log(sum);
}

/// The parameters of a row that its bounds need.
struct row_facts {
  double kappa, gamma, sink;
};

/// Softmax and what puts a ground or a sink beside the keys. r.weight: masses over their sum.
inline void bound_masses(row_errors& r, policies const& what, row_facts const& f, accuracy const& a) {
  double const shift = f.kappa * finite_or_zero(f.gamma), w0 = r.w0;
  for (index j : r.keys)
    if (double const w = r.weight[to_size(j)]; w > 0) r.delta[to_size(j)] += a.eps * std::fabs(std::log(w));
  double const rho = a.eps * (4 + a.terms(r.count));
  double tau = a.eps * shift;
  if (what.sink()) tau += a.eps * 2 * finite_or_zero(f.sink);
  if (what.grounded()) tau = a.eps * 2 * (1 + f.kappa) * finite_or_zero(f.gamma);
  double keys = 0, below = 0, ground = w0;  // sum w delta; the same over keys below gamma; share of the ground level
  for (index j : r.keys) {
    double const w = r.weight[to_size(j)], error = r.delta[to_size(j)];
    keys += w * error;
    if (what.grounded() && w > 0 && r.logit[to_size(j)] < f.gamma + a.c * (error + tau))
      below += w * error, ground += w;
  }
  double const normaliser = keys + (ground > 0 ? std::fmin(ground, 1) * tau : 0) + rho;  // U
  double const flushed =
      16 * a.tiny * static_cast<double>(r.count + 1);  // masses of keys below the normal range may be 0
  double const change = what.grounded() ? ground * (1 - w0) : w0 * (1 - w0);
  r.w0_bound = a.c * (w0 * (keys + rho) + change * tau + below) + flushed;
  if (w0 > 0) r.w0_bound += a.c * a.eps * w0 * std::fabs(std::log(w0));
  r.lse_bound = a.c * (normaliser + a.eps * (finite_or_zero(r.lse) + 2 * shift));
  for (index j : r.keys)
    r.bound[to_size(j)] = r.weight[to_size(j)] * beyond_first_order(a.c * (r.delta[to_size(j)] + normaliser + rho));
}

/// r.weight: those of softmax. alpha and the share with their errors.
struct affine_facts {
  double alpha, alpha_error, share, share_error;
};
inline void bound_affine(row_errors& r, policies const& what, row_facts const& f, affine_facts const& x,
                         accuracy const& a) {
  bound_masses(r, what, f, a);
  for (index j : r.keys)
    r.bound[to_size(j)] = std::fabs(x.alpha) * r.bound[to_size(j)] +
                          a.c * (x.alpha_error + 2 * a.eps * std::fabs(x.alpha)) * r.weight[to_size(j)];
  if (r.lse > -infinity) r.plain = a.c * (x.share_error + (a.terms(r.count) + 3) * a.eps * std::fabs(x.share));
}

/// r.weight: those of softmax.
inline void bound_adjusted(row_errors& r, policies const& what, row_facts const& f, accuracy const& a) {
  double least = infinity, most = -infinity, low_error = 0, high_error = 0;
  for (index j : r.keys) least = std::fmin(least, r.logit[to_size(j)]), most = std::fmax(most, r.logit[to_size(j)]);
  std::vector<double> const delta = r.delta;
  bound_masses(r, what, f, a);
  if (r.keys.empty()) return;
  double nearest = 0;  // errors of the ends: of any key that may be one
  for (index j : r.keys) nearest = std::fmax(nearest, delta[to_size(j)]);
  for (index j : r.keys) {
    double const error = delta[to_size(j)];
    if (r.logit[to_size(j)] - least <= a.c * (error + nearest)) low_error = std::fmax(low_error, error);
    if (most - r.logit[to_size(j)] <= a.c * (error + nearest)) high_error = std::fmax(high_error, error);
  }
  bool const product = what.normalizer == "adjusted_product", full = what.normalizer == "adjusted_full_range";
  double const low = product ? 0
                     : full  ? least
                             : std::fmin(least, 0),
               high = product ? 1
                      : full  ? most
                              : std::fmax(most, 0);
  if (product || low == 0) low_error = 0;
  if (product || high == 0) high_error = 0;
  double const range = high - low,
               range_error = (low_error + high_error + 2 * a.eps * (std::fabs(low) + std::fabs(high)));
  bool const exact = r.keys.size() == 1;  // both ends are the same number
  for (index j : r.keys) {
    double const p = r.weight[to_size(j)], length = (r.logit[to_size(j)] - least) + std::fabs(least - low);
    double& bound = r.bound[to_size(j)];
    if (full && exact) {
      bound = 0;
    } else if (!product && range <= 4 * a.c * range_error) {
      bound = range == 0 && low_error == 0 && high_error == 0
                  ? 0
                  : p + bound;  // ends that rounding moves: anything in [0, p]
    } else {
      double const summed = (most - r.logit[to_size(j)]) + (most - low);
      double const moved =
          delta[to_size(j)] + low_error + (4 + a.terms(r.count)) * a.eps * summed + a.eps * std::fabs(low);
      bound = bound * length / range + a.c * p / range * (moved + length * (product ? 0 : 2 * range_error / range));
    }
  }
}

/// Sums without competition. r.weight: those of the operator; `bias` is that of a sigmoid.
inline void bound_summed(row_errors& r, policies const& what, double bias, accuracy const& a) {
  double const rho = a.eps * (4 + a.terms(r.count));
  double const divisor = what.is("mean") || what.is("centered") ? static_cast<double>(r.count)
                         : what.is("normalized")                ? r.sum
                                                                : 1;
  double errors = 0, masses = 0;
  for (index j : r.keys) {
    double const x = r.logit[to_size(j)], delta = r.delta[to_size(j)];
    double& bound = r.bound[to_size(j)];
    if (what.is("sigmoid")) {
      double const dx = a.c * (delta + a.eps * (2 * std::fabs(bias) + std::fabs(x + bias)));
      double const w = sigmoid(x + bias);
      bound = std::fmin(w * beyond_first_order(sigmoid(dx - (x + bias)) * dx + a.c * rho), 1);
    } else if (what.is("exponential")) {
      bound = std::exp(x) * beyond_first_order(a.c * (delta + rho));
      if (x > 0.7 * std::log(1 / a.tiny)) bound = infinity;  // F must not overflow on the logits in use
    } else {
      double const mass = std::fmax(x, 0);
      errors += x > -a.c * delta ? delta : 0, masses += mass;
      bound = a.c * ((x > -a.c * delta ? delta : 0) + rho * mass);
    }
  }
  if (what.is("normalized")) {
    double const relative = r.sum > 0 ? errors / r.sum + rho : errors > 0 ? infinity : 0;
    for (index j : r.keys) {
      double& bound = r.bound[to_size(j)];
      bound = r.sum > 0    ? bound / r.sum + a.c * relative * std::fmax(r.logit[to_size(j)], 0) / r.sum
              : errors > 0 ? 1
                           : 0;
    }
    r.lse_bound = a.c * (relative + a.eps * finite_or_zero(r.lse));
    return;
  }
  for (index j : r.keys) r.bound[to_size(j)] /= divisor;
  if (what.is("centered") && r.count > 0) r.plain = a.c * (errors + (rho + 4 * a.eps) * masses) / divisor / divisor;
}

/// w = alpha p + share / keys of a row under an affine normalizer: alpha, share = average - alpha, and what divides it.
struct affine_row {
  double alpha, share, keys, average;
};
inline affine_row affine_of(policies const& what, problem const& p, dimensions const& n, result const& r, index b,
                            index h, index i) {
  auto const row = [&](char const* name, double fallback) { return parameter(p, name, n.heads, b, h, i, fallback); };
  double const pre = row("alpha_pre", 0);
  double const alpha = p.parameters.count("alpha_pre") == 0 ? row("affine_alpha", 1)
                       : what.normalizer.find("clipping") != std::string::npos
                           ? std::fmin(std::fmax(pre / 10 + 0.5, 0), 1)
                           : sigmoid(pre);
  double const average = r.average.empty() ? row("average", 1) : element(r.average, n.heads, 0, h, 0);
  bool const total = what.normalizer.find("total") != std::string::npos;
  double const keys = static_cast<double>(total ? n.keys : visible_count(p, n, b, h, i));
  return {alpha, what.is("free") ? row("affine_beta", 0) : average - alpha, keys, average};
}

/// [1 + k x]_+^(1/k), e^x at k = 0.
inline double deformed(double k, double x) {
  if (k == 0) return std::exp(x);
  return 1 + k * x > 0 ? std::exp(std::log1p(k * x) / k) : 0;
}
inline void bound_deformed(row_errors& r, double k, double threshold, accuracy const& a) {
  double m = -infinity, heaviest = 0;
  for (index j : r.keys) m = std::fmax(m, r.logit[to_size(j)]), heaviest = std::fmax(heaviest, r.weight[to_size(j)]);
  if (!(heaviest > 0)) return;
  // The level from the heaviest weight: tau = k L - 1 tells nothing of it as k -> 0.
  double const log_w = std::log(heaviest), level = m - (k == 0 ? log_w : std::expm1(k * log_w) / k);
  auto const own = [&](index j) {
    double const x = r.logit[to_size(j)] - level;
    return r.delta[to_size(j)] + a.eps * (4 + 2 * std::fabs(r.weight[to_size(j)] > 0 ? x : 1 / std::fmax(k, 1e-3)));
  };
  double most = 0;  // of keys in the support, or close enough to get there
  for (int pass = 0; pass < 2; ++pass) {
    double const reach = a.c * most;
    for (index j : r.keys)
      if (deformed(k, r.logit[to_size(j)] - level + a.c * own(j) + reach) > 0)
        most = std::fmax(most, r.delta[to_size(j)]);
  }
  double const moved = most + a.eps * (4 + 4 * std::fabs(m - level));
  double sum = 0;
  for (index j : r.keys) {
    double const x = r.logit[to_size(j)] - level, dx = a.c * (own(j) + moved), w = r.weight[to_size(j)];
    double const above = deformed(k, x + dx), below = deformed(k, x - dx);
    r.bound[to_size(j)] = std::fmax(std::fabs(above - w), std::fabs(w - below));
    sum += r.bound[to_size(j)];
  }
  double const relative = std::fmin(sum, 1) + a.c * a.eps * (4 + a.terms(r.count));
  for (index j : r.keys) r.bound[to_size(j)] = std::fmin(r.bound[to_size(j)] + relative * r.weight[to_size(j)], 1);
  r.threshold_bound = a.c * (k * (most + a.eps * (6 + 4 * std::fabs(m - level) + 2 * std::fabs(m))) +
                             a.eps * (1 + std::fabs(threshold)));
}

inline void bound_top_k(row_errors& r, double threshold, policies const& what, row_facts const& f, accuracy const& a) {
  auto const kept = [&](index j) { return r.weight[to_size(j)] > 0 || r.logit[to_size(j)] > threshold; };
  double const lse = log_sum(r, kept);
  std::vector<double> const delta = r.delta;
  double cut_error = 0;
  for (index j : r.keys)
    if (r.logit[to_size(j)] == threshold) cut_error = std::fmax(cut_error, delta[to_size(j)]);
  // Who may change places across the cut: the nearest on each side, and whoever is as near as errors reach.
  double lowest_kept = infinity, highest_left = -infinity;
  for (index j : r.keys) {
    double const x = r.logit[to_size(j)], error = a.c * delta[to_size(j)];
    if (kept(j))
      lowest_kept = std::fmin(lowest_kept, x - error);
    else
      highest_left = std::fmax(highest_left, x + error);
  }
  bound_masses(r, what, f, a);
  for (index j : r.keys) {
    double const x = r.logit[to_size(j)], error = a.c * delta[to_size(j)];
    bool const in = kept(j), may_change = in ? x - error <= highest_left : x + error >= lowest_kept;
    if (may_change && error > 0) {
      r.bound[to_size(j)] += std::exp(x - lse) * (1 + beyond_first_order(error));
      cut_error = std::fmax(cut_error, delta[to_size(j)]);
    }
  }
  r.threshold_bound = a.c * (cut_error + a.eps * finite_or_zero(threshold));
}
}  // namespace detail

/// The bounds of every element; `reference` is a reference backend's result for p (its scores, logits and weights are
/// read).
inline bounds bounds_of(entry const& e, problem const& p, dimensions const& n, result const& reference,
                        accuracy const& a) {
  policies const what = policies_of(e);
  auto const like = [](array const& x) { return x.empty() ? array{} : make_array(x.shape); };
  bounds bound{like(reference.out), like(reference.lse), like(reference.ground_weight), like(reference.threshold),
               like(reference.average)};
  auto const tensor = [&](char const* name) {
    auto const found = p.tensors.find(name);
    return found == p.tensors.end() ? nullptr : &found->second;
  };
  array const *v = tensor("v"), *v0 = tensor("v0");
  array const *gate_q = tensor("gate_q"), *gate_k = tensor("gate_k"), *gates = tensor("gates");
  array const *value_gate = tensor("value_gate"), *output_gate = tensor("output_gate");
  detail::score_errors const score_error(what, p, n, a);
  double const clipping = what.normalizer.find("clipping") != std::string::npos ? 1 : 0;  // x / 10 + 1/2 cancels
  double const average_error = a.eps * (a.terms(n.batch * n.queries) + 6);
  for (std::size_t x = 0; x < bound.average.data.size(); ++x)
    bound.average.data[x] = a.c * average_error * (std::fabs(reference.average.data[x]) + clipping) + a.tiny;
  detail::row_errors r;

  for (index b = 0; b < n.batch; ++b)
    for (index h = 0; h < n.heads; ++h)
      for (index i = 0; i < n.queries; ++i) {
        auto const row = [&](char const* name, double fallback) {
          return parameter(p, name, n.heads, b, h, i, fallback);
        };
        auto const at = [&](array const& x, index j) { return element(x, n.heads, b, h, i, j); };
        auto const of_row = [&](array const& x) { return x.empty() ? 0 : element(x, n.heads, b, h, i); };
        r.resize(n.keys);
        r.keys.clear();
        r.count = visible_count(p, n, b, h, i);
        r.w0 = of_row(reference.ground_weight), r.lse = of_row(reference.lse), r.sum = 0;
        r.w0_bound = r.lse_bound = r.threshold_bound = r.plain = 0;
        double const log_count = r.count > 0 ? std::log(static_cast<double>(r.count)) : 0;
        double const gamma = row("gamma", 0), gate = detail::softplus(row("beta", 0));
        double const kappa = what.length_scale == "margin" ? detail::softplus(row("alpha", 0)) * log_count : 0;
        double const shift = kappa * detail::finite_or_zero(gamma);
        double const stretch = std::log(std::fmax(row("extension", 1), 1)) / 10 + 1;
        double const factor = what.length_scale == "margin" ? 1 + kappa
                              : what.length_scale == "ssmax"
                                  ? std::fabs(row("ss_scale", 1) * log_count) + std::fabs(row("ss_bias", 0))
                              : what.length_scale == "logn" ? log_count / std::fabs(std::log(row("length0", 512)))
                              : what.length_scale == "yarn" ? stretch * stretch
                                                            : 1;

        for (index j = 0; j < n.keys; ++j) {
          double const logit = at(reference.logits, j);
          if (!visible(p, b, h, i, j)) continue;
          r.weight[to_size(j)] = at(reference.weights, j);
          if (!std::isfinite(logit)) continue;
          r.keys.push_back(j);
          r.logit[to_size(j)] = logit;
          double const s = at(reference.scores, j);
          double slope_of_cap = 1;
          if (what.softcap) {
            double const t = s / row("cap", 30);
            slope_of_cap = std::fmax(1 - t * t, 0);
          }
          double error = factor * (slope_of_cap * score_error(b, h, i, j) + 3 * std::fabs(s)) +
                         (shift <= 32 * kappa ? 3 * shift : 0);
          if (what.gate != "none") {
            double const g = gates ? at(*gates, j) : detail::dot(*gate_q, *gate_k, n.heads, b, h, i, j);
            bool const two_sided = what.gate == "two_sided" || what.gate == "given_two_sided";
            double const t = std::tanh(g / 2), slope = two_sided ? (1 - t * t) / 2 : detail::sigmoid(-g);
            error += 3 * (two_sided ? gate * std::fabs(t) : detail::product(gate, detail::softplus(-g)));
            if (gate_q) {
              double sum = 0;
              for (index d = 0; d < n.gate_width; ++d)
                sum += std::fabs(element(*gate_q, n.heads, b, h, i, d) * element(*gate_k, n.heads, b, h, j, d));
              error += (a.terms(n.gate_width) + 2) * gate * slope * sum;
            }
          }
          r.delta[to_size(j)] = error * a.eps;
        }

        detail::row_facts const facts{kappa, gamma, row("sink", 0)};
        if (what.affine() || what.adjusted())
          for (index j : r.keys) r.weight[to_size(j)] = std::exp(r.logit[to_size(j)] - r.lse);  // of softmax
        if (what.affine()) {
          detail::affine_row const x = detail::affine_of(what, p, n, reference, b, h, i);
          double const alpha_error =
              p.parameters.count("alpha_pre") == 0 ? 0 : a.eps * (4 * std::fabs(x.alpha) + clipping);
          double const moved = reference.average.empty() ? 0 : average_error * (std::fabs(x.average) + clipping);
          detail::bound_affine(r, what, facts, {x.alpha, alpha_error, x.share / x.keys, (alpha_error + moved) / x.keys},
                               a);
        } else if (what.adjusted()) {
          detail::bound_adjusted(r, what, facts, a);
        } else if (what.summed()) {
          if (what.is("normalized"))
            for (index j : r.keys) r.sum += std::fmax(r.logit[to_size(j)], 0);
          detail::bound_summed(r, what, row("sig_bias", -log_count), a);
        } else if (what.deformed()) {
          double const k = what.normalizer == "sparsemax"  ? 1
                           : what.normalizer == "entmax15" ? 0.5
                                                           : row("ent_alpha", 1.5) - 1;
          detail::bound_deformed(r, k, of_row(reference.threshold), a);
        } else if (what.is("top_k")) {
          detail::bound_top_k(r, of_row(reference.threshold), what, facts, a);
        } else {
          detail::bound_masses(r, what, facts, a);
        }

        if (!bound.ground_weight.empty()) element(bound.ground_weight, n.heads, b, h, i) = r.w0_bound;
        if (!bound.lse.empty()) element(bound.lse, n.heads, b, h, i) = r.lse_bound;
        if (!bound.threshold.empty()) element(bound.threshold, n.heads, b, h, i) = r.threshold_bound;
        double const rho = a.c * a.eps * a.terms(r.count);
        for (index d = 0; d < n.value_width; ++d) {
          double& sum = element(bound.out, n.heads, b, h, i, d);
          if (v0) sum = std::fabs(element(*v0, n.heads, b, h, i, d)) * (r.w0_bound + a.c * a.eps * r.w0) + a.tiny;
        }
        for (index j = 0; j < n.keys; ++j) {
          if (!visible(p, b, h, i, j)) continue;
          double const w = std::fabs(r.weight[to_size(j)]), error = r.bound[to_size(j)] + 16 * a.tiny;
          for (index d = 0; d < n.value_width; ++d) {
            double x = element(*v, n.heads, b, h, j, d), round = what.summed() ? rho : 0;
            if (value_gate) x *= detail::sigmoid(element(*value_gate, n.heads, b, h, j, d)), round += 6 * a.c * a.eps;
            if (w > 0 || std::isfinite(x))
              element(bound.out, n.heads, b, h, i, d) +=
                  detail::product(error + round * w + r.plain, std::fabs(x)) + a.tiny;
          }
        }
        if (output_gate)
          for (index d = 0; d < n.value_width; ++d) {
            double const gate_factor =
                detail::sigmoid(element(*output_gate, n.heads, b, h, i, output_gate->shape[3] == 1 ? 0 : d));
            double& of_out = element(bound.out, n.heads, b, h, i, d);
            of_out = gate_factor * of_out +
                     6 * a.c * a.eps * detail::finite_or_zero(element(reference.out, n.heads, b, h, i, d)) + a.tiny;
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
    bool const any = bound.data[i] == infinity;  // beyond what the operator promises
    double const ratio = same || any ? 0 : std::isfinite(y) ? std::fabs(x - y) / bound.data[i] : infinity;
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
  for (std::size_t i = got.shape.size(); i-- > 0; rest /= to_size(got.shape[i]))
    axis.push_back(rest % to_size(got.shape[i]));
  for (std::size_t i = axis.size(); i-- > 0;) text << axis[i] << (i ? "," : "]");
  text << " got " << got.data[where] << ", expected " << expected.data[where] << ", error / bound " << worst << "; "
       << failures << " of " << got.data.size() << " elements fail\n";
  all.failure += text.str();
}

inline comparison compare(result const& got, result const& expected, bounds const& bound) {
  comparison all;
  compare("out", got.out, expected.out, bound.out, all);
  compare("lse", got.lse, expected.lse, bound.lse, all);
  compare("ground weight", got.ground_weight, expected.ground_weight, bound.ground_weight, all);
  compare("threshold", got.threshold, expected.threshold, bound.threshold, all);
  compare("average", got.average, expected.average, bound.average, all);
  return all;
}

/// What a failure message says about the case: enough to repeat it.
inline std::string describe(entry const& e, backend b, dimensions const& n, std::string const& mask,
                            std::uint64_t seed) {
  std::ostringstream text;
  text << e.name << " on " << instances::name(b) << ", case seed " << seed << ", mask " << mask << ", B " << n.batch
       << ", H " << n.heads << '/' << n.key_heads << '/' << n.value_heads << ", Lq " << n.queries << ", Lk " << n.keys
       << ", D " << n.width << ", Dv " << n.value_width << '\n';
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
  return same_bits(x.out, y.out) && same_bits(x.lse, y.lse) && same_bits(x.ground_weight, y.ground_weight) &&
         same_bits(x.threshold, y.threshold) && same_bits(x.average, y.average);
}

}  // namespace attune::test
