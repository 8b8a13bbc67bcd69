// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How far gradients of a backend may be from those of the reference: the one home of their tolerance.
//
// The condition of a gradient is measured, not derived: the double reference runs again beside the problem, with all
// its numbers (tensors, parameters, tables, cotangents) moved by a few units of its last place. What that changes shows
// what rounding of the inputs does, and what rounding inside the reference does, in units of 2^-52; a backend whose
// numbers have spacing eps may be off by as many eps. A slice is one (batch, head) of a gradient, so the whole array
// where all rows share a parameter.
//
//   noise   largest change of the slice in 3 such problems
//   size    largest |gradient| of the slice
//   terms   largest |gradient| of sum_i +-H_i lse_i, H_i = max_j |do_i| |v_j|: the terms p_j h_j of a row before their
//           mean is subtracted. Of a row with a single key, or one so far ahead, the difference is nil and what rounds
//           are the terms. Candidate sets, which have no lse, borrow that of softmax. Of centred weights (F_j - mean F)
//           / K, which have none either, the terms are F_j / K: times |do_i| by values and H_i by scores. Values under
//           an affine normalizer have terms of size alpha |do_i| / N, whose difference is nil where a row sees a single
//           key. A margin's alpha has terms of size |gamma|, in which only the lse moves
//   lost    max(1, K / 2C), K keys: a row with one key ahead of others that are each below half a unit of it loses all
//           of them, K eps / 2 of its sums (saturated softcaps), and nothing beside the problem shows it
//   bound   C (eps (2^52 noise + size + lost * terms) + what is flushed below the normal numbers)
//
// Other sums over keys and queries need no more: they are formed block by block, and the larger noise of a longer sum
// is measured. Three problems may miss the condition of a slice that holds a single number: a slice that fails gets 12
// more. At a discontinuity (a support that changes, a kink, an extreme logit that another key takes over) no such bound
// holds: a slice that still fails is accepted where a change of the order of 16 eps moves the reference itself by a
// quarter of the error, in one of 48 problems. These are counted.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "affine_row.hpp"
#include "comparison.hpp"

namespace attune::test {

using instances::cotangent;
using instances::gradients;

/// Cotangents of random outputs: always out, the others with probability 3/4.
inline cotangent random_cotangent(entry const& e, dimensions const& n, rng& random) {
  cotangent d;
  d.out = random_array({n.batch, n.heads, n.queries, n.value_width}, random);
  if (e.has_lse && random.chance(0.75)) d.lse = random_array({n.batch, n.heads, n.queries, 1}, random);
  if (e.has_ground_weight && random.chance(0.75))
    d.ground_weight = random_array({n.batch, n.heads, n.queries, 1}, random);
  return d;
}

/// Whether a parameter may leave this value: a kink has a convention there, which the slices beside it must not hide.
inline bool may_move(std::string const& name, double x) {
  if (x == 0 || !std::isfinite(x)) return false;
  if (name == "alpha_pre") return std::fabs(x) != 5;
  if (name == "extension") return x != 1;
  return name != "momentum";
}
/// Domains that end within the reach of a perturbation.
inline bool in_domain(std::string const& name, double x) { return name != "ent_alpha" || (x >= 1 && x <= 4); }

/// Moves every row of features by +-eta as a whole, as rounding of a dot product would, and every number by as much on
/// its own.
inline void perturb(std::string const& name, array& a, double eta, rng& random) {
  std::size_t const features = a.shape.size() > 3 ? to_size(a.shape[3]) : 1;
  double together = 0;
  for (std::size_t n = 0; n < a.data.size(); ++n) {
    if (n % features == 0) together = random.chance(0.5) ? eta : -eta;
    double& x = a.data[n];
    double const moved = x * (1 + together + random.uniform(-eta, eta));
    if (may_move(name, x) && in_domain(name, moved)) x = moved;
  }
}

/// The number of slices of an array; numbers of one slice.
inline std::size_t slices_of(array const& a) { return to_size(a.shape[0] * a.shape[1]); }
inline std::size_t slice_size(array const& a) { return a.data.size() / std::max<std::size_t>(slices_of(a), 1); }

namespace detail {
inline double finite_or_zero(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
}  // namespace detail

/// Gradients of the reference at one problem and beside it.
class gradient_reference {
 public:
  gradient_reference(entry const& e, problem const& p, cotangent const& d, dimensions const& n, std::uint64_t seed)
      : entry_(&e), problem_(&p), cotangent_(&d), n_(n), seed_(seed), exact_(at(p, d)) {}

  gradients const& exact() const { return exact_; }
  index keys() const { return n_.keys; }
  index longest() const { return std::max(n_.queries, n_.keys); }

  /// How far from the problem a backend of spacing eps may see a discontinuity. Entmax with k = alpha - 1 > 1 has
  /// weights t^(1/k) with t = k a - tau resolved to eps: what is below eps^(1/k) may leave the support, whatever the
  /// condition.
  double reach(double eps) const {
    double k = 1;
    if (auto const found = problem_->parameters.find("ent_alpha"); found != problem_->parameters.end())
      for (double alpha : found->second.data) k = std::fmax(k, alpha - 1);
    return std::pow(16 * eps, 1 / k);
  }

  /// The largest term of a slice before a row's mean is subtracted.
  double terms(std::string const& name, std::size_t slice) {
    if (!terms_) terms_ = slice_sizes(row_terms());
    auto const found = terms_->find(name);
    return found == terms_->end() ? 0 : found->second[slice];
  }

  /// The largest change of a slice in the first `count` perturbed problems of this eta.
  double change(std::string const& name, std::size_t slice, double eta, std::size_t count) {
    double most = 0;
    for (std::size_t n = 0; n < count; ++n) most = std::fmax(most, changes(eta, n).at(name)[slice]);
    return most;
  }

 private:
  using slice_numbers = std::map<std::string, std::vector<double>>;

  /// What a row's mean is subtracted from.
  gradients row_terms() const {
    if (entry_->uncentered_vjp) return uncentered_terms();
    if (!entry_->has_lse && !entry_->softmax_vjp) return {};
    cotangent d;
    d.lse = row_sizes();
    gradients g = entry_->has_lse ? at(*problem_, d) : entry_->softmax_vjp(*problem_, d);
    add_far_levels(g, d.lse);
    add_uniform_shares(g);
    return g;
  }
  /// Of w_j = F_j / K: by scores the gradients of sum_i +-H_i sum_j w_j, by values those of sum_i |do_i| out_i.
  gradients uncentered_terms() const {
    problem of_sums = *problem_;
    of_sums.tensors.at("v") = make_array({n_.batch, 1, n_.keys, 1}, 1);
    cotangent d;
    d.out = row_sizes();
    gradients g = entry_->uncentered_vjp(of_sums, d);
    d.out = cotangent_->out;
    for (double& x : d.out.data) x = std::fabs(x);
    g["v"] = entry_->uncentered_vjp(*problem_, d).at("v");
    return g;
  }
  /// +-H_i with H_i = max_j |do_i| |v_j|.
  array row_sizes() const {
    array const &v = problem_->tensors.at("v"), &by_out = cotangent_->out;
    array sizes = make_array({n_.batch, n_.heads, n_.queries, 1});
    rng random(seed_);
    for (index b = 0; b < n_.batch; ++b)
      for (index h = 0; h < n_.heads; ++h)
        for (index i = 0; i < n_.queries; ++i) {
          double most = 0;
          for (index j = 0; j < n_.keys; ++j) {
            double sum = 0;
            for (index x = 0; x < n_.value_width && visible(*problem_, b, h, i, j); ++x)
              sum += detail::finite_or_zero(element(by_out, n_.heads, b, h, i, x) * element(v, n_.heads, b, h, j, x));
            most = std::fmax(most, sum);
          }
          element(sizes, n_.heads, b, h, i) = random.chance(0.5) ? most : -most;
        }
    return sizes;
  }
  /// Of an affine weight alpha p + (average - alpha) / N the parts with alpha, nil where p = 1/N: where a row sees a
  /// single key.
  void add_uniform_shares(gradients& g) const {
    policies const what = policies_of(*entry_);
    if (!what.affine()) return;
    result const exact = entry_->run(*problem_, backend::reference_double, {});
    array& v = g["v"] = make_array(problem_->tensors.at("v").shape);
    for (index b = 0; b < n_.batch; ++b)
      for (index h = 0; h < n_.heads; ++h)
        for (index i = 0; i < n_.queries; ++i) {
          affine_row const x = affine_of(what, *problem_, n_, exact, b, h, i);
          for (index j = 0; j < n_.keys && x.keys > 0; ++j)
            for (index d = 0; d < n_.value_width && visible(*problem_, b, h, i, j); ++d)
              element(v, n_.heads, b, h, j, d) +=
                  std::fabs(x.alpha * element(cotangent_->out, n_.heads, b, h, i, d)) / x.keys;
        }
  }
  /// A margin's row constant -kappa gamma and a ground level gamma + kappa gamma move the lse against each other.
  void add_far_levels(gradients& g, array const& row_sizes) const {
    auto const alpha = g.find("alpha");
    if (policies_of(*entry_).length_scale != "margin" || alpha == g.end()) return;
    for (index b = 0; b < n_.batch; ++b)
      for (index h = 0; h < n_.heads; ++h)
        for (index i = 0; i < n_.queries; ++i) {
          auto const row = [&](char const* name) { return parameter(*problem_, name, n_.heads, b, h, i, 0); };
          double const count = static_cast<double>(std::max<index>(visible_count(*problem_, n_, b, h, i), 1)),
                       by_lse = cotangent_->lse.empty() ? 0 : element(cotangent_->lse, n_.heads, b, h, i),
                       moved = std::fabs(by_lse) + std::fabs(element(row_sizes, n_.heads, b, h, i));
          double& size = element(alpha->second, n_.heads, b, h, i);
          double const slope = std::log(count) / (1 + std::exp(-row("alpha")));
          size = std::fabs(size) + moved * slope * detail::finite_or_zero(row("gamma"));
        }
  }
  static slice_numbers slice_sizes(gradients const& g) {
    slice_numbers to;
    for (auto const& [name, a] : g) {
      to[name].assign(slices_of(a), 0);
      for (std::size_t x = 0; x < a.data.size(); ++x) {
        double& most = to[name][x / slice_size(a)];
        most = std::fmax(most, detail::finite_or_zero(a.data[x]));
      }
    }
    return to;
  }

  gradients at(problem const& p, cotangent const& d) const { return entry_->vjp(p, backend::reference_double, d, {}); }

  slice_numbers const& changes(double eta, std::size_t n) {
    std::vector<slice_numbers>& known = changes_[eta];
    while (known.size() <= n) known.push_back(measured(eta, known.size()));
    return known[n];
  }
  slice_numbers measured(double eta, std::size_t n) const {
    rng random(seed_ + 7919 * n);
    problem p = *problem_;
    cotangent d = *cotangent_;
    for (auto* all : {&p.tensors, &p.parameters, &p.tables})
      for (auto& [name, a] : *all) perturb(name, a, eta, random);
    for (array* a : {&d.out, &d.lse, &d.ground_weight}) perturb("cotangent", *a, eta, random);
    slice_numbers to;
    for (auto const& [name, moved] : at(p, d)) {
      array const& still = exact_.at(name);
      std::vector<double>& most = to[name];
      most.assign(slices_of(still), 0);
      for (std::size_t x = 0; x < still.data.size(); ++x) {
        double const difference = std::fabs(moved.data[x] - still.data[x]);
        double& of_slice = most[x / slice_size(still)];
        if (std::isfinite(difference)) of_slice = std::fmax(of_slice, difference);
      }
    }
    return to;
  }

  entry const* entry_;
  problem const* problem_;
  cotangent const* cotangent_;
  dimensions n_;
  std::uint64_t seed_;
  gradients exact_;
  std::map<double, std::vector<slice_numbers>> changes_;
  std::optional<slice_numbers> terms_;
};

/// C, one for all operators. In 165,000 random problems the worst error / bound is 0.8, and up to 1 beside the edge of
/// the support of an entmax; of all operators one problem in 400 is accepted at a discontinuity: of 39,000, each an
/// entmax in float with an alpha above 2.
inline constexpr double gradient_factor = 8;

struct gradient_comparison {
  double worst = 0;            ///< largest error / bound of the slices within their bounds
  bool discontinuous = false;  ///< some slice was accepted because the reference jumps beside the problem
  std::string failure;         ///< empty: nothing failed
};

namespace detail {
/// Error of one element, 0 where both are the same (NaN with NaN, overflow of the backend's type with infinity).
inline double gradient_error(double got, double expected, backend b) {
  if (b == backend::cpu_float && std::fabs(expected) > 0x1.fffffep127) expected = std::copysign(infinity, expected);
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  double const error = std::fabs(got - expected);
  return std::isfinite(error) ? error : infinity;
}

/// The worst element of a slice.
struct slice_error {
  double error = 0, size = 0;
  std::size_t where = 0;
};
inline slice_error error_of_slice(array const& got, array const& expected, std::size_t slice, backend b) {
  slice_error worst;
  std::size_t const first = slice * slice_size(expected);
  worst.where = first;
  for (std::size_t x = first; x < first + slice_size(expected); ++x) {
    double const error = gradient_error(got.data[x], expected.data[x], b);
    if (error > worst.error) worst.error = error, worst.where = x;
    worst.size = std::fmax(worst.size, finite_or_zero(expected.data[x]));
  }
  return worst;
}

inline std::string element_name(std::string const& name, array const& a, std::size_t where) {
  std::string text;
  for (std::size_t axis = a.shape.size(); axis-- > 0; where /= to_size(a.shape[axis]))
    text = (axis == 0 ? "[" : ",") + std::to_string(where % to_size(a.shape[axis])) + text;
  return "gradient of " + name + text + "]";
}
}  // namespace detail

/// Error / bound of a slice from so many problems beside this one.
inline double slice_ratio(gradient_reference& reference, std::string const& name, std::size_t slice,
                          detail::slice_error const& e, accuracy const& a, std::size_t problems) {
  constexpr double eta = 0x1p-51;
  double const lost = std::fmax(1, static_cast<double>(reference.keys()) / (2 * gradient_factor));
  double const rounding =
      reference.change(name, slice, eta, problems) * 0x1p52 + e.size + lost * reference.terms(name, slice);
  return e.error / (gradient_factor * (a.eps * rounding + 2 * a.tiny * static_cast<double>(reference.longest())));
}

/// Whether the reference jumps by a quarter of the error beside the problem.
inline bool jumps(gradient_reference& reference, std::string const& name, std::size_t slice,
                  detail::slice_error const& e, accuracy const& a) {
  for (std::size_t problems = 1; problems <= 48; ++problems)
    if (reference.change(name, slice, reference.reach(a.eps), problems) >= e.error / 4) return true;
  return false;
}

/// The gradients of a backend against the reference.
inline gradient_comparison compare(gradients const& got, backend b, gradient_reference& reference) {
  accuracy const a = accuracy_of(b);
  gradient_comparison all;
  std::ostringstream text;
  text.precision(17);
  if (got.size() != reference.exact().size())
    text << got.size() << " gradients, not " << reference.exact().size() << '\n';
  for (auto const& [name, expected] : reference.exact()) {
    auto const found = got.find(name);
    if (found == got.end() || found->second.shape != expected.shape ||
        found->second.data.size() != expected.data.size()) {
      text << "gradient of " << name << ": missing, or of a wrong shape\n";
      continue;
    }
    for (std::size_t slice = 0; slice < slices_of(expected); ++slice) {
      detail::slice_error const e = detail::error_of_slice(found->second, expected, slice, b);
      double ratio = e.error == infinity ? infinity : e.error == 0 ? 0 : slice_ratio(reference, name, slice, e, a, 3);
      if (ratio > 1 && ratio < infinity) ratio = slice_ratio(reference, name, slice, e, a, 15);
      if (ratio <= 1)
        all.worst = std::fmax(all.worst, ratio);
      else if (ratio < infinity && jumps(reference, name, slice, e, a))
        all.discontinuous = true;
      else
        text << detail::element_name(name, expected, e.where) << " got " << found->second.data[e.where] << ", expected "
             << expected.data[e.where] << ", error / bound " << ratio << '\n';
    }
  }
  all.failure = text.str();
  return all;
}

/// Whether gradients agree bit for bit (NaN with NaN).
inline bool same_bits(gradients const& x, gradients const& y) {
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](auto const& one, auto const& other) {
           return one.first == other.first && same_bits(one.second, other.second);
         });
}

}  // namespace attune::test
