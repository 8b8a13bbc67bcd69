// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   w = e^(a - lse),  h = <do, v>,  R = <do, out> + w0 dw0 - dlse,  da = w (h - R),  dv += w do,  <dq, dk> += da d<a>
//
// The rows of a backward pass that recomputes its weights from a saved lse, with one change. The lse and the row term
// come from a forward pass that is right. Each row adds its own part to the gradients, so that a mistake of some rows
// is a sum over them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <attune/exec/reference/dense_vjp.hpp>
#include <attune/testing/judging/defects/altered_pairs.hpp>
#include <attune/testing/vocabulary.hpp>

namespace attune::testing::detail {

/// A part of the gradients that a row adds.
struct row_effect {
  enum class kind {
    change,          ///< the difference that `change` makes
    whole,           ///< all of it
    logit_factor,    ///< the derivative by a factor of the recomputed logits
    product_factor,  ///< the derivative by a factor of h = <do, v>
    last_product     ///< `change` alters what dS is multiplied by, and not dS
  };
  kind is = kind::change;
  row_change change = {};
};
/// Whether an effect changes dq. The others change dv alone, or dk and dv alone.
constexpr bool changes_queries(row_effect const& x) {
  return !x.change.weights_stored && x.change.weight_bits == 0 && !x.change.unnormalized &&
         x.change.one_head_of_group == 0;
}

/// Whether the weights of an operator are e^(a - lse), and nothing else multiplies weights, values or outputs. A policy
/// may still have another mass: compare `whole_row` with the exact gradients.
template <class Op>
concept RecomputesWeights =
    Op::has_lse && Op::contractions::size > 0 && !Op::contractions::has_derived && Op::has_plain_values &&
    !Op::has_output_gate && Op::normalizer_policy::traits.family == row_family::masses &&
    Op::normalizer_policy::traits.divided_by == divisor::sum &&
    Op::normalizer_policy::traits.reference == mass_reference::running_maximum &&
    !Op::normalizer_policy::traits.ground_mass && !Op::normalizer_policy::traits.weight_factor &&
    !Op::normalizer_policy::traits.uniform_share;

/// Adds rows to gradients: select(b, h, i), then add(effect, gradients) as often as you like. Gradients by parameters
/// and tables of the normalizer and the kernel's logit stay 0.
/// Complexity: select: O(Lk (D + Dv)); add: the same for the pairs that the change alters.
template <RecomputesWeights Op>
class backward_rows {
  using view = any_tensor;
  using normalizer = typename Op::normalizer_policy;
  static constexpr int terms = Op::contractions::size;
  using D = dual<double, terms>;

 public:
  backward_rows(Op const& op, inputs<Op, view> const& in, problem_shape const& p, cotangents<Op, view> const& d)
      : op_(attune::detail::numbered(op)), uncapped_(op_), pairs_(op_, in, p), p_(p), d_(d) {
    for (operator_parameter const& x : listed_parameters(uncapped_))
      if (x.path().ends_with("cap")) const_cast<parameter&>(*x.at) = 1e12;
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = 0; i < p.queries; ++i) {
          select(b, h, i);
          lse_.push_back(lse_here_), row_terms_.push_back(row_term_);
        }
  }
  backward_rows(backward_rows const&) = delete;  // it refers to its arguments

  /// Reads a row.
  void select(index_t b, index_t h, index_t i) {
    b_ = b, h_ = h, i_ = i;
    by_out_.assign(std::size_t(p_.value_width), 0);
    if (!d_.out.absent())
      for (index_t c = 0; c < p_.value_width; ++c) by_out_[std::size_t(c)] = d_.out(b, h, i, c);
    gains_.assign(std::size_t(p_.keys), std::numeric_limits<double>::quiet_NaN());
    pair_reader<double, Op> reader(pairs_, right_, b, h, i, numbers_);
    here_ = read(reader, right_);
    attune::detail::visible_keys<double> seen;
    largest_ = -math::infinity<double>(), largest_key_ = -1;
    for (pair const& x : here_) {
      seen.keys.push_back(x.at), seen.logits.push_back(x.logit);
      if (x.logit > largest_) largest_ = x.logit, largest_key_ = x.at;
    }
    row<double> const plain = attune::detail::scalar_row<double>(p_, op_.mask, b, h, i);
    auto const w = attune::detail::weigh<normalizer>(op_.bind(plain).normalizer, seen, plain.visible);
    lse_here_ = w.lse;
    row_term_ = 0;
    for (std::size_t n = 0; n < here_.size(); ++n)
      if (w.weights[n] != 0) row_term_ += w.weights[n] * here_[n].gain;
    if constexpr (Op::has_ground_weight) {
      double ground = d_.ground_weight.absent() ? 0 : d_.ground_weight(b, h, i, 0);
      if constexpr (Op::uses(field::v0))
        for (index_t c = 0; c < p_.value_width; ++c)
          ground += by_out_[std::size_t(c)] * attune::detail::read_shared<double>(pairs_.in().v0, b, h, i, c);
      row_term_ += w.ground_weight * ground;
    }
    if (!d_.lse.absent()) row_term_ -= d_.lse(b, h, i, 0);
  }

  /// Adds an effect in the selected row.
  void add(row_effect const& effect, dense_gradients<double>& to) const {
    pair_reader<double, Op> right(pairs_, right_, b_, h_, i_, numbers_);
    switch (effect.is) {
      case row_effect::kind::change:
        return add_change(effect.change, right, to);
      case row_effect::kind::whole:
        for (pair const& x : here_) pull(right, x, part_of(right_, x), 1, to);
        return;
      case row_effect::kind::logit_factor:
        for (pair const& x : here_) {
          part const whole = part_of(right_, x);
          if (whole.weight != 0) pull(right, x, whole, x.logit, to);
        }
        return;
      case row_effect::kind::last_product: {
        pair_reader<double, Op> other(pairs_, effect.change, b_, h_, i_, numbers_);
        for (pair const& x : here_) {
          part const slope{0, part_of(right_, x).slope};
          pull(right, x, slope, -1, to), pull(other, x, slope, 1, to);
        }
        return;
      }
      case row_effect::kind::product_factor:
        for (pair const& x : here_) pull(right, x, {0, x.weight(lse_here_) * x.gain}, 1, to);
    }
  }

  /// Adds the difference if logits and values come from another call, and lse and the row term from this one. `other`
  /// has selected the same row.
  void add_other(backward_rows const& other, dense_gradients<double>& to) const {
    pair_reader<double, Op> right(pairs_, right_, b_, h_, i_, numbers_);
    for (pair const& x : here_) pull(right, x, part_of(right_, x), -1, to);
    for (pair const& x : other.here_) pull(right, x, part_of(right_, x), 1, to);
  }

  /// Calls visit(key, what it adds to dq) for each visible key of the selected row.
  template <class Visit>
  void for_each_key(dense_gradients<double>& scratch, Visit const& visit) const {
    pair_reader<double, Op> right(pairs_, right_, b_, h_, i_, numbers_);
    auto& q = scratch.of(field::q);
    std::size_t const first = std::size_t(q.at(b_, h_, i_, 0)), width = std::size_t(q.extents.feature);
    for (pair const& x : here_) {
      std::fill_n(q.values.begin() + std::ptrdiff_t(first), width, 0.);
      pull(right, x, {0, part_of(right_, x).slope}, 1, scratch);
      visit(x.at, q.values.data() + first);
    }
  }

 private:
  /// A key that the row sees.
  struct pair {
    index_t at = 0;                      ///< the key
    double logit = 0, gain = 0;          ///< gain: h
    std::array<double, terms> slopes{};  ///< of the logit, by the contractions
    double weight(double lse) const { return std::exp(logit - lse); }
  };
  /// Of a pair: weight * do is added to dv, slope * da to dq and dk.
  struct part {
    double weight, slope;
  };

  /// The pairs as a kernel with a change reads them.
  std::vector<pair> read(pair_reader<double, Op>& reader, row_change const& c) const {
    row<D> moving = attune::detail::scalar_row<D>(p_, op_.mask, b_, h_, i_);
    if (auto const position = pairs_.moved_position(c, b_, i_)) moving.position = D(double(*position));
    auto const f = op_.bind(moving);
    auto const plain = op_.bind(attune::detail::scalar_row<double>(p_, op_.mask, b_, h_, i_));
    bool const own_values =
        c.value_head == heads::own && c.value_batch == batches::own && c.value_rows == matrix::right;
    std::vector<pair> to;
    for (index_t j : pairs_.keys_of(c, b_, h_, i_)) {
      double x[terms];
      D duals[terms];
      reader.contractions(x, j);
      for (int n = 0; n < terms; ++n) duals[n] = D::variable(x[n], n);
      D const a = logit_of<Op, D>(c, f, duals, key<D>{D(double(j))});
      pair& one = to.emplace_back();
      one.at = j, one.logit = c.logits_stored ? rounded_to(*c.logits_stored, a.value) : a.value;
      for (int n = 0; n < terms; ++n) one.slopes[std::size_t(n)] = a.tangent[n];
      if (c.cap_slopes != 1) {
        D const plain_logit = logit_of<Op, D>(c, uncapped_.bind(moving), duals, key<D>{D(double(j))});
        for (int n = 0; n < terms; ++n) {
          double const without = plain_logit.tangent[n], with = a.tangent[n];
          one.slopes[std::size_t(n)] = c.cap_slopes == 0 ? without : without != 0 ? with / without * with : 0;
        }
      }
      double& known = gains_[std::size_t(j)];
      if (!own_values || known != known) {
        for (index_t d = 0; d < p_.value_width; ++d) one.gain += by_out_[std::size_t(d)] * reader.value(plain, j, d);
        if (own_values) known = one.gain;
      } else {
        one.gain = known;
      }
    }
    return to;
  }
  part part_of(row_change const& c, pair const& x) const {
    std::size_t const next = row_of(b_, h_, (std::min)(i_ + 1, p_.queries - 1));
    double const w = x.weight(c.next_lse ? lse_[next] : lse_here_),
                 gain = c.products_stored ? rounded_to(*c.products_stored, x.gain) : x.gain;
    double R = c.row_term_factor * (c.next_row_term ? row_terms_[next] : row_term_);
    if (c.row_terms_stored) R = rounded_to(*c.row_terms_stored, R);
    part to{w, c.slopes_by_products ? w * gain - R : w * (gain - R)};
    if (c.slopes_stored) to.slope = rounded_to(*c.slopes_stored, to.slope);
    if (c.slope_bits > 0) to.slope = rounded_to_bits(c.slope_bits, to.slope);
    if (c.through_maximum && x.at == largest_key_) to.slope -= row_term_;
    if (c.weights_stored) to.weight = rounded_to(*c.weights_stored, w);
    if (c.weight_bits > 0) to.weight = rounded_to_bits(c.weight_bits, w);
    if (c.unnormalized) to.weight = std::exp(x.logit - largest_);
    if (index_t const group = p_.heads / p_.key_heads; c.one_head_of_group != 0)
      if (h_ % group != (c.one_head_of_group == 1 ? 0 : group - 1)) to = {0, 0};
    return to;
  }
  void pull(pair_reader<double, Op>& reader, pair const& x, part const& by, double factor,
            dense_gradients<double>& to) const {
    if (by.slope != 0) {
      std::array<double, terms> slopes{};
      for (std::size_t n = 0; n < slopes.size(); ++n) slopes[n] = factor * by.slope * x.slopes[n];
      reader.pull(slopes.data(), to, x.at);
    }
    index_t const head = p_.group(h_, p_.value_heads);
    for (index_t d = 0; d < p_.value_width && by.weight != 0; ++d)
      to.add(field::v, b_, head, x.at, d, factor * by.weight * by_out_[std::size_t(d)]);
  }
  void add_change(row_change const& c, pair_reader<double, Op>& right, dense_gradients<double>& to) const {
    if (reads_elsewhere(c) || c.without_gate || c.cap_slopes != 1) {
      pair_reader<double, Op> reader(pairs_, c, b_, h_, i_, numbers_);
      for (pair const& x : here_) pull(right, x, part_of(right_, x), -1, to);
      for (pair const& x : read(reader, c)) pull(reader, x, part_of(c, x), 1, to);
      return;
    }
    // The pairs that both have differ by a rounding or a number of the row: only the difference is added.
    std::vector<pair> const altered = changes_pairs(c) ? read(right, c) : here_;
    std::size_t n = 0;
    for (pair const& x : altered) {
      for (; n < here_.size() && here_[n].at < x.at; ++n) pull(right, here_[n], part_of(right_, here_[n]), -1, to);
      part by = part_of(c, x);
      if (n < here_.size() && here_[n].at == x.at) {
        part const was = part_of(right_, here_[n++]);
        by.weight -= was.weight, by.slope -= was.slope;
      }
      pull(right, x, by, 1, to);
    }
    for (; n < here_.size(); ++n) pull(right, here_[n], part_of(right_, here_[n]), -1, to);
  }
  /// Whether other keys take part, or with other logits.
  static bool changes_pairs(row_change const& c) {
    row_change keys;
    keys.weight_bits = c.weight_bits, keys.slope_bits = c.slope_bits;
    keys.weights_stored = c.weights_stored, keys.products_stored = c.products_stored;
    keys.slopes_stored = c.slopes_stored, keys.row_terms_stored = c.row_terms_stored;
    keys.row_term_factor = c.row_term_factor, keys.slopes_by_products = c.slopes_by_products;
    keys.next_row_term = c.next_row_term, keys.next_lse = c.next_lse, keys.through_maximum = c.through_maximum;
    keys.unnormalized = c.unnormalized, keys.one_head_of_group = c.one_head_of_group;
    return c != keys;
  }
  std::size_t row_of(index_t b, index_t h, index_t i) const { return std::size_t((b * p_.heads + h) * p_.queries + i); }

  Op op_, uncapped_;
  altered_pairs<Op> pairs_;
  problem_shape const& p_;
  cotangents<Op, view> const& d_;
  lift<double> numbers_{};
  row_change right_{};
  index_t b_ = 0, h_ = 0, i_ = 0, largest_key_ = -1;
  double lse_here_ = 0, row_term_ = 0, largest_ = 0;
  std::vector<pair> here_;
  mutable std::vector<double> gains_;  ///< h of each key; NaN: not read yet
  std::vector<double> by_out_, lse_, row_terms_;
};

}  // namespace attune::testing::detail
