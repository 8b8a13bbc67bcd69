// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The loss of gradients near the smallest normal number of the arithmetic. There every mass, every factor of a gate and
// every slope of a policy may be off by `flushed`. In 16 bits, weights and dS may also be off by `step`, half the
// spacing of their subnormal numbers. With weights that are off by `of_mass` and, in proportion to themselves, by
// `of_sum` (certify/underflow.hpp), and gains g >= |h_j|, |h_0|, |dlse|:
//   dS_j   2 g (of_mass + slope_j of_sum) + 2 slope_j (loss of the gains in gates),
//       slope_j >= |dw/da_j| of any weight
//   by x   |da/dx| (loss of dS + step) + |dS| flushed       for every contraction x
//   v_j    |do| (of_mass + w_j of_sum + step)
//       v0 likewise; factors of gates, and their slopes, also lose `flushed`
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <attune/certify/error_bound.hpp>
#include <attune/exec/reference/dense_vjp.hpp>
#include <attune/operators/numbering.hpp>

namespace attune::certify::detail {

template <class Op>
class gradient_underflow {
  using view = any_tensor;
  using normalizer = typename Op::normalizer_policy;
  static constexpr normalizer_traits is = normalizer::traits;
  static constexpr int pairs = Op::contractions::size;
  using D =
      dual<double, (std::max)(pairs, 2)>;  // by the contractions of a pair, by the extreme logits, or by one number

 public:
  gradient_underflow(Op const& op, inputs<Op, view> const& in, problem_shape const& p, cotangents<Op, view> const& d,
                     double flushed, double step, dense_gradients<rounded>& to)
      : op_(op), in_(in), p_(p), d_(d), flushed_(flushed), step_(step), to_(to) {}

  /// Adds the possible loss of a row, as sums of |terms|.
  void operator()(index_t b, index_t h, index_t i) {
    b_ = b, h_ = h, i_ = i, v_head_ = p_.group(h, p_.value_heads);
    auto const f = op_.bind(attune::detail::scalar_row<D>(p_, op_.mask, b, h, i));
    row<double> const at = attune::detail::scalar_row<double>(p_, op_.mask, b, h, i);
    auto const plain = op_.bind(at);
    read_logits(f);
    auto const w = attune::detail::weigh<normalizer>(plain.normalizer, seen_, at.visible);
    per_mass_ = weight_per_mass<normalizer>(plain.normalizer, seen_, w, at.visible);
    loss_ = weight_loss(flushed_, per_mass_, double(seen_.keys.size()));
    read_outputs(f, plain, w);
    double const through_ends = slope_through_ends(f.normalizer, w);
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      pull_factor(n, std::fabs(w.weights[n]));
      pull_logit(n, per_mass_ * (slope_of_mass(f.normalizer, w, n) + through_ends));
      pull_values(f, n, std::fabs(w.weights[n]) * factor(n));
    }
  }

 private:
  template <class Bound>
  void read_logits(Bound const& f) {
    seen_ = {};
    logits_.clear();
    factors_.clear();
    lift<double> const numbers{};
    attune::detail::reference_contraction<double, Op, view> const contract{op_, in_, p_, numbers};
    auto x = attune::detail::contractions_of_row(contract, f, b_, h_, i_, {0, p_.keys}, seen_.keys);
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      D moving[pairs + 1];
      for (int c = 0; c < pairs; ++c) moving[c] = D::variable(x.at(n, c), c);
      logits_.push_back(f.logit(moving, key<D>{D(double(seen_.keys[n]))}));
      factors_.emplace_back(contract, f, moving, b_, h_, i_, seen_.keys[n]);
      seen_.logits.push_back(logits_.back().value);
    }
  }

  /// Computes |do| before the output gate and its possible loss in the gate, the gains, and the gradients of output
  /// gate and v0.
  template <class Moving, class Bound>
  void read_outputs([[maybe_unused]] Moving const& f, [[maybe_unused]] Bound const& plain,
                    attune::detail::weighed_row<double> const& w) {
    std::size_t const width = std::size_t(p_.value_width);
    auto const number = [&](auto const& x) {
      return x.absent() ? 0 : std::fabs(attune::detail::read<double>(x, b_, h_, i_, 0));
    };
    by_out_.assign(width, 0);
    by_out_lost_.assign(width, 0);
    gain_ = 1;
    gain_lost_ = 0;
    double ground = 0, ground_lost = 0;
    if constexpr (Op::has_ground_weight) ground = number(d_.ground_weight);
    for (index_t c = 0; c < p_.value_width && !d_.out.absent(); ++c) {
      double& by_out = by_out_[std::size_t(c)] = std::fabs(attune::detail::read<double>(d_.out, b_, h_, i_, c));
      double const v0 = ground_value(c);
      if constexpr (Op::has_output_gate) {
        double const given = by_out;
        index_t const at = p_.output_gate_width == 1 ? 0 : c;
        D const factor =
            f.output_gate.factor(D::variable(attune::detail::read<double>(in_.output_gate, b_, h_, i_, at), 0));
        double out = w.ground_weight * v0, lost = weighed(v0, 2 * loss_.of_sum);
        for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
          double const v = gated(plain, n, c);
          out += weighed(w.weights[n], v);
          lost += weighed(v, loss_.of_mass) + weighed(w.weights[n], raw_lost(n, c));
        }
        lost += weighed(out, loss_.of_sum);
        give(field::output_gate, h_, i_, at,
             weighed(factor.tangent[0], weighed(given, lost)) + weighed(given, out) * flushed_);
        by_out = weighed(given, factor.value);
        by_out_lost_[std::size_t(c)] = given * flushed_;
      }
      ground += weighed(by_out, v0);
      ground_lost += weighed(by_out_lost_[std::size_t(c)], v0);
      if constexpr (Op::uses(field::v0)) {
        auto const to = attune::detail::broadcast(in_.v0, b_, h_, i_);
        double const lost = weighed(by_out, (2 + w.ground_weight) * loss_.of_sum + step_) +
                            weighed(w.ground_weight, by_out_lost_[std::size_t(c)]);
        to_.add(field::v0, to.batch, to.head, to.position, c, rounded(lost));
      }
    }
    double largest = 0;
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      double gain = 0, lost = 0;
      for (index_t c = 0; c < p_.value_width; ++c) {
        double const v = gated(plain, n, c);
        gain += weighed(by_out_[std::size_t(c)], v);
        lost += weighed(by_out_lost_[std::size_t(c)], v) + weighed(by_out_[std::size_t(c)], raw_lost(n, c));
      }
      largest = std::fmax(largest, gain);
      gain_lost_ = std::fmax(gain_lost_, lost);
    }
    gain_ = std::fmax(gain_, largest + ground);
    gain_lost_ += ground_lost;
    if constexpr (Op::has_lse) gain_ += number(d_.lse);
  }
  template <class Bound>
  double gated(Bound const& plain, std::size_t n, index_t c) const {
    lift<double> const numbers{};
    attune::detail::reference_contraction<double, Op, view> const contract{op_, in_, p_, numbers};
    return weighed(factor(n), attune::detail::value_of_pair(contract, plain, b_, h_, i_, v_head_, seen_.keys[n], c));
  }
  /// The size of what multiplies the weight of a key.
  double factor(std::size_t n) const { return std::fabs(factors_[n].factor.value); }
  /// The possible loss of a value in its gates.
  double raw_lost([[maybe_unused]] std::size_t n, [[maybe_unused]] index_t c) const {
    if constexpr (!Op::has_plain_values)
      return (1 + factor(n)) * flushed_ * std::fabs(attune::detail::read<double>(in_.v, b_, v_head_, seen_.keys[n], c));
    else
      return 0;
  }
  double ground_value([[maybe_unused]] index_t c) const {
    if constexpr (Op::uses(field::v0)) {
      auto const at = attune::detail::broadcast(in_.v0, b_, h_, i_);
      return std::fabs(attune::detail::read<double>(in_.v0, at.batch, at.head, at.position, c));
    } else {
      return 0;
    }
  }

  /// The derivative of masses by a logit.
  template <class Bound>
  double slope_of_mass([[maybe_unused]] Bound const& bound, attune::detail::weighed_row<double> const& w,
                       std::size_t n) const {
    double const a = seen_.logits[n];
    if constexpr (is.family == row_family::masses) {
      D const moving = D::variable(a, 0), m(w.reference);
      double slope = std::fabs(bound.earned(moving, m).tangent[0]);
      if constexpr (is.ground_mass) slope += std::fabs(bound.ground(moving, m).tangent[0]);
      return magnitude(slope);
    } else {
      return w.earned == 0 ? 0 : std::exp(a - w.reference) / w.earned;
    }
  }
  /// The effect of the extreme logits on the places of all logits.
  template <class Bound>
  double slope_through_ends([[maybe_unused]] Bound const& bound,
                            [[maybe_unused]] attune::detail::weighed_row<double> const& w) const {
    if constexpr (is.family == row_family::range_weighted && !is.detached_ends) {
      auto const ends = bound.ends(D::variable(w.lowest, 0), D::variable(w.highest, 1));
      double const range = std::fabs(ends.high.value - ends.low.value);
      double moves = 0;
      for (int k = 0; k < 2; ++k) moves += std::fabs(ends.low.tangent[k]) + std::fabs(ends.high.tangent[k]);
      return range == 0 ? 0 : magnitude(moves / range);
    } else {
      return 0;
    }
  }

  void pull_logit(std::size_t n, double slope) {
    D const& a = logits_[n];
    double const ground = is.ground_mass ? 2 : 1,
                 lost = ground * 2 * (weighed(gain_, loss_.of_mass) + weighed(slope * gain_, loss_.of_sum)) +
                        2 * weighed(slope, gain_lost_) + step_;
    rounded by[pairs + 1];
    for (int c = 0; c < pairs; ++c) by[c] = rounded(weighed(a.tangent[c], lost) + weighed(2 * slope, gain_) * flushed_);
    lift<rounded> const numbers{};
    attune::detail::reference_contraction<rounded, Op, view> const contract{op_, in_, p_, numbers};
    contract.pull_all(by, to_, b_, h_, i_, seen_.keys[n]);
  }
  /// df_j = w_j <do, v_j> goes to the contraction that the factor reads, if it reads one.
  void pull_factor([[maybe_unused]] std::size_t n, [[maybe_unused]] double weight) {
    if constexpr (Op::logit_contractions < pairs) {
      rounded by[pairs];
      for (rounded& x : by) x = rounded(0);
      by[pairs - 1] = rounded(weighed(factors_[n].factor.tangent[pairs - 1],
                                      weighed(gain_, loss_.of_mass) + weighed(weight, gain_lost_) + flushed_));
      lift<rounded> const numbers{};
      attune::detail::reference_contraction<rounded, Op, view> const contract{op_, in_, p_, numbers};
      contract.pull_all(by, to_, b_, h_, i_, seen_.keys[n]);
    }
  }
  template <class Moving>
  void pull_values([[maybe_unused]] Moving const& f, std::size_t n, double weight) {
    index_t const j = seen_.keys[n];
    double const lost = weighed(factor(n), loss_.of_mass) + weighed(weight, loss_.of_sum) + step_;
    lift<rounded> const numbers{};
    attune::detail::reference_contraction<rounded, Op, view> const contract{op_, in_, p_, numbers};
    for (index_t c = 0; c < p_.value_width; ++c) {
      double const by_out = by_out_[std::size_t(c)],
                   move_lost = weighed(by_out, lost) + weighed(weight, by_out_lost_[std::size_t(c)]);
      attune::detail::pull_terms_of_pair(contract, to_, b_, h_, i_, j, c, rounded(move_lost));
      if constexpr (Op::has_value_gate) {
        D const factor =
            f.value_gate.factor(D::variable(attune::detail::read<double>(in_.value_gate, b_, v_head_, j, c), 0));
        double const v = std::fabs(attune::detail::read<double>(in_.v, b_, v_head_, j, c)),
                     by_factor = weighed(weight, by_out) * flushed_;
        give(field::v, v_head_, j, c, weighed(factor.value, move_lost) + by_factor);
        give(field::value_gate, v_head_, j, c, weighed(v, weighed(factor.tangent[0], move_lost) + by_factor));
      } else {
        give(field::v, v_head_, j, c, move_lost);
      }
    }
  }
  void give(field f, index_t head, index_t position, index_t c, double lost) {
    to_.add(f, b_, head, position, c, rounded(lost));
  }

  Op const& op_;
  inputs<Op, view> const& in_;
  problem_shape const& p_;
  cotangents<Op, view> const& d_;
  double flushed_, step_;
  dense_gradients<rounded>& to_;
  index_t b_ = 0, h_ = 0, i_ = 0, v_head_ = 0;
  attune::detail::visible_keys<double> seen_;
  std::vector<D> logits_;
  std::vector<attune::detail::pair_factor<D, Op>> factors_;
  std::vector<double> by_out_, by_out_lost_;
  double per_mass_ = 1, gain_ = 1, gain_lost_ = 0;
  weight_loss loss_{0, 1, 0};
};

/// The possible loss of a call's gradients, as sums of |terms|.
template <class Op>
dense_gradients<rounded> through_underflow(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p,
                                           cotangents<Op, any_tensor> const& d, double flushed, double step) {
  dense_gradients<rounded> to = attune::detail::blank_gradients<rounded>(op, in);
  Op const of = attune::detail::numbered(op);
  gradient_underflow<Op> row(of, in, p, d, flushed, step, to);
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) row(b, h, i);
  return to;
}

}  // namespace attune::certify::detail
