// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cotangents of a row -> gradients by its contractions, values, parameters and tables
//
// With h_j = <do, v_j>, h_0 = <do, v0> + dw0, E = sum e_j, G = sum g_j and S = sum e_j h_j:   L = A(E, G) S
// + share(E, G) sum h_j + w0(E, G) h_0 + lse(E, G) dlse. A policy's source, run on dual numbers, has the derivatives.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/exec/reference/row.hpp>
#include <attune/operators/entries.hpp>

namespace attune::detail {

/// One row of a VJP.
template <class T, class Op, class View, class Cotangents = cotangents<Op, View>>
class row_pullback {
  using normalizer = typename Op::normalizer_policy;
  static constexpr normalizer_traits is = normalizer::traits;
  // Directions of the duals: first the contractions of a pair and the level of a candidate set, or the masses of a row;
  // then the parameters.
  static constexpr int pairs = Op::contractions::size, level = pairs, first_parameter = (std::max)(pairs + 1, 2);
  static constexpr int parameters = parameter_count<Op>;
  // A few entries of the tables that `bind` reads move like parameters. Each pass over a row has others.
  static constexpr int entries = has_entries<Op> ? 3 : 0, numbers_moved = parameters + entries,
                       directions = first_parameter + numbers_moved;
  using D = dual<T, directions>;

 public:
  row_pullback(Op const& op, inputs<Op, View> const& in, problem_shape const& p, Cotangents const& d,
               lift<T> const& numbers, dense_gradients<T>& to)
      : op_(op), in_(in), p_(p), d_(d), numbers_(numbers), to_(to) {}

  void operator()(index_t b, index_t h, index_t i) {
    one_pass(b, h, i, 0);
    if constexpr (entries > 0) {
      index_t count = 0;
      for (operator_table const& x : listed_tables(op_)) count += entries_of(x);
      for (index_t first = entries; first < count; first += entries) one_pass(b, h, i, first);
    }
  }

 private:
  /// The gradients of a row by the entries from `first_entry` on; the first pass adds all others.
  void one_pass(index_t b, index_t h, index_t i, index_t first_entry) {
    b_ = b, h_ = h, i_ = i, v_head_ = p_.group(h, p_.value_heads);
    first_pass_ = first_entry == 0;
    lift<D> moving{numbers_, {0, parameters, first_parameter}};
    moving.seeds.first_entry = int(first_entry);
    moving.seeds.entries = entries;
    moving.seeds.entry_direction = first_parameter + parameters;
    row<D> const r = scalar_row<D>(p_, op_.mask, b, h, i, moving);
    auto const f = op_.bind(r);
    row<T> const plain_row = scalar_row<T>(p_, op_.mask, b, h, i, numbers_);
    auto const plain = op_.bind(plain_row);

    reference_contraction<T, Op, View> const contract{op_, in_, p_, numbers_};
    seen_ = {};
    logits_.clear();
    factors_.clear();
    row_contractions<T> x = contractions_of_row(contract, plain, b, h, i, {0, p_.keys}, seen_.keys);
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      D moved[pairs + 1];
      for (int c = 0; c < pairs; ++c) moved[c] = D::variable(x.at(n, c), c);
      logits_.push_back(f.logit(moved, key<D>{D(T(double(seen_.keys[n])))}));
      factors_.emplace_back(contract, f, moved, b, h, i, seen_.keys[n]);
      seen_.logits.push_back(logits_.back().value);
    }
    weighed_row<T> const w = weigh<normalizer>(plain.normalizer, seen_, plain_row.visible);

    by_parameter_.assign(std::size_t(numbers_moved), T(0));
    read_cotangents(f, plain, w);
    by_pair_ = {pairs, std::vector<T>(x.values.size(), T(0))};
    if constexpr (is.family == row_family::masses)
      masses(f, w, r.visible);
    else if constexpr (is.family == row_family::range_weighted)
      adjusted(f, w);
    else
      candidates(f, w);

    for (std::size_t n = 0; n < seen_.keys.size(); ++n)
      if (!outside_support(w, n))
        factors_[n].pull(T(w.weights[n] * gains_[n]), [&](auto const& move) { along_directions(n, move); });
    pull_in_order<D>(contract, f, x, by_pair_, to_, b, h, i, first_parameter, directions, [&](int k, T const& by) {
      T& to = by_parameter_[std::size_t(k - first_parameter)];
      to = to + by;
    });
    if constexpr (entries > 0) pull_entries(first_entry);
    if (!first_pass_) return;
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      contract.pull_all(by_pair_.of(n), to_, b, h, i, seen_.keys[n]);
      if (outside_support(w, n)) continue;
      pull_value(f, factors_[n](w.weights[n]), seen_.keys[n]);
    }
    for (int s = 0; s < parameters; ++s) {
      T& to = to_.parameters[std::size_t(s)].values(b, h, i, 0);
      to = to + by_parameter_[std::size_t(s)];
    }
    if constexpr (Op::uses(field::v0)) {
      row_index const at = broadcast(in_.v0, b, h, i);
      for (index_t c = 0; c < p_.value_width; ++c)
        to_.add(field::v0, at.batch, at.head, at.position, c, T(w.ground_weight * by_out_[std::size_t(c)]));
    }
  }
  /// Passes the gradients by the entries that move in this pass to their tables.
  void pull_entries(index_t first_entry) {
    for (operator_table const& x : listed_tables(op_))
      for (int s = 0; s < entries; ++s) {
        index_t const n = first_entry + s - x.at->first_entry();
        if (n >= 0 && n < entries_of(x))
          to_.add(*x.at, b_, h_, n / x.at->columns(), n % x.at->columns(), by_parameter_[std::size_t(parameters + s)]);
      }
  }

  /// Computes h_j, h_0 and the gradient before the output gate; adds the gradient of the output gate itself.
  template <class Moving, class Bound>
  void read_cotangents([[maybe_unused]] Moving const& moving, Bound const& f, weighed_row<T> const& w) {
    auto const number = [&](auto const& x) { return x.absent() ? T(0) : read<T>(x, b_, h_, i_, 0); };
    by_lse_ = by_ground_ = T(0);
    if constexpr (Op::has_lse) by_lse_ = number(d_.lse);
    if constexpr (Op::has_ground_weight) by_ground_ = number(d_.ground_weight);
    by_out_.assign(std::size_t(p_.value_width), T(0));
    gains_.assign(seen_.keys.size(), T(0));
    by_weight_ = gains_;
    ground_gain_ = by_ground_;
    if (d_.out.absent()) return;
    for (index_t c = 0; c < p_.value_width; ++c) {
      T const given = read<T>(d_.out, b_, h_, i_, c);
      if constexpr (Op::has_output_gate) {
        T out(0);
        for (std::size_t n = 0; n < seen_.keys.size(); ++n)
          if (!outside_support(w, n)) out = out + factors_[n](w.weights[n]) * value(f, n, c);
        if constexpr (Op::uses(field::v0)) out = out + w.ground_weight * ground_value(c);
        index_t const at = p_.output_gate_width == 1 ? 0 : c;
        D const factor = moving.output_gate.factor(D::variable(read_shared<T>(in_.output_gate, b_, h_, i_, at), 0));
        if (first_pass_) to_.add(field::output_gate, b_, h_, i_, at, T(given * out * factor.tangent[0]));
        by_factor(T(given * out), factor);
        by_out_[std::size_t(c)] = given * factor.value;
      } else {
        by_out_[std::size_t(c)] = given;
      }
    }
    for (std::size_t n = 0; n < seen_.keys.size(); ++n) {
      if (outside_support(w, n)) continue;
      for (index_t c = 0; c < p_.value_width; ++c) gains_[n] = gains_[n] + by_out_[std::size_t(c)] * value(f, n, c);
      by_weight_[n] = factors_[n](gains_[n]);
    }
    if constexpr (Op::uses(field::v0))
      for (index_t c = 0; c < p_.value_width; ++c)
        ground_gain_ = ground_gain_ + by_out_[std::size_t(c)] * ground_value(c);
  }

  template <class Bound>
  void masses(Bound const& f, weighed_row<T> const& w, D const& visible) {
    D const m(w.reference);
    std::size_t const n_keys = logits_.size();
    std::vector<D> earned, ground;
    compensated<T> value_sum, plain_sum;
    for (std::size_t n = 0; n < n_keys; ++n) {
      earned.push_back(f.normalizer.earned(logits_[n], m));
      if constexpr (is.ground_mass) ground.push_back(f.normalizer.ground(logits_[n], m));
      value_sum.add(T(earned.back().value * by_weight_[n]));
      plain_sum.add(by_weight_[n]);
    }
    // Directions 0 and 1 move E and G relative to themselves, so that neither 1/E nor 1/E^2 is ever formed.
    T const one(1), zero(0);
    T const earned_unit = scalar<T>::any(w.earned == zero) ? one : w.earned;
    T const ground_unit = scalar<T>::any(w.ground == zero) ? one : w.ground;
    D total_earned(w.earned), total_ground(w.ground);
    total_earned.tangent[0] = earned_unit;
    total_ground.tangent[1] = ground_unit;
    auto const done = finish_masses<normalizer>(f.normalizer, m, total_earned, total_ground, visible);
    auto const dead = done.lse.value == -math::infinity<T>();  // no mass at all: the lse does not move
    [[maybe_unused]] auto const lse_move = [&](int k) {
      return math::select(dead, zero, T(done.lse.tangent[k] + f.logit_shift.tangent[k]));
    };
    std::vector<T> by(std::size_t(directions), zero);
    for (int k = 0; k < directions; ++k) {
      T sum = chained(value_sum.value(), done.value_factor.tangent[k]);
      if constexpr (is.uniform_share) sum = sum + chained(plain_sum.value(), done.share.tangent[k]);
      if constexpr (Op::has_ground_weight || Op::uses(field::v0))
        sum = sum + chained(ground_gain_, done.ground_weight.tangent[k]);
      if constexpr (Op::has_lse) sum = sum + chained(by_lse_, lse_move(k));
      by[std::size_t(k)] = sum;
    }
    T const factor = done.value_factor.value;
    for (std::size_t n = 0; n < n_keys; ++n)
      along_directions(n, [&](int k) {
        T move = chained(by_weight_[n], T(earned[n].tangent[k] * factor)) +
                 chained(by[0], T(earned[n].tangent[k] / earned_unit));
        if constexpr (is.ground_mass) move = move + chained(by[1], T(ground[n].tangent[k] / ground_unit));
        return move;
      });
    for (int s = 0; s < numbers_moved; ++s)
      by_parameter_[std::size_t(s)] = by_parameter_[std::size_t(s)] + by[std::size_t(first_parameter + s)];
  }

  /// w_j = p_j f_j, f_j = (a_j - low) / (high - low): da_j = p_j h_j f' + p_j (h_j f_j - sum p h f), plus the part
  /// through the ends (low and high).
  template <class Bound>
  void adjusted(Bound const& f, weighed_row<T> const& w) {
    T const zero(0), one(1), off = -math::infinity<T>();
    if (scalar<T>::all(w.earned == zero)) return;
    D lowest(w.lowest), highest(w.highest);
    lowest.tangent[0] = one;
    highest.tangent[1] = one;
    auto const ends = f.normalizer.ends(lowest, highest);
    T const range = as_divisor(T(ends.high.value - ends.low.value));
    T const inverse = math::select(range == zero, zero, T(one / range));
    std::size_t const n_keys = logits_.size();
    std::vector<T> p(n_keys), place(n_keys), by_logit(n_keys);
    compensated<T> mean, by_low, by_high;
    for (std::size_t n = 0; n < n_keys; ++n) {
      T const& a = seen_.logits[n];
      p[n] = math::exp_nonpositive(T(a - w.reference)) / w.earned;
      auto const is_off = a == off;
      T const above = math::select(is_off, zero, T(a - ends.low.value)),
              below = math::select(is_off, zero, T(a - ends.high.value));
      place[n] = above * inverse;
      T const gain = by_weight_[n] * p[n];
      mean.add(T(gain * place[n]));
      by_low.add(T(gain * below * inverse * inverse));
      by_high.add(T(-(gain * above * inverse * inverse)));
    }
    for (std::size_t n = 0; n < n_keys; ++n)
      by_logit[n] =
          p[n] * (by_weight_[n] * inverse) + p[n] * (by_weight_[n] * place[n] - mean.value()) + by_lse_ * p[n];
    auto const through_ends = [&](int k) {
      return chained(by_low.value(), ends.low.tangent[k]) + chained(by_high.value(), ends.high.tangent[k]);
    };
    // Fixed ends move relative to logits that exclude the row constant.
    [[maybe_unused]] auto const standing = [&](int k) {
      return chained(T(by_low.value() + by_high.value()), T(-f.logit_shift.tangent[k]));
    };
    if constexpr (!is.detached_ends) {
      // Goes to the first key that has the value. If the scalar cannot decide which one that is, every candidate may
      // get it.
      auto const give_first = [&](T const& value, T const& gain) {
        auto missing = value == value;
        for (std::size_t n = 0; n < n_keys; ++n) {
          auto const found = (seen_.logits[n] == value) & missing;
          by_logit[n] = math::select(found, T(by_logit[n] + gain), by_logit[n]);
          missing = missing & (seen_.logits[n] != value);
        }
      };
      give_first(w.lowest, through_ends(0));
      give_first(w.highest, through_ends(1));
    }
    for (std::size_t n = 0; n < n_keys; ++n)
      along_directions(n, [&](int k) { return chained(by_logit[n], logits_[n].tangent[k]); });
    for (int s = 0; s < numbers_moved; ++s)
      by_parameter_[std::size_t(s)] =
          by_parameter_[std::size_t(s)] +
          (is.detached_ends ? standing(first_parameter + s) : through_ends(first_parameter + s)) +
          chained(by_lse_, f.logit_shift.tangent[first_parameter + s]);
  }

  /// The gradient of L = sum p h / sum p.
  /// threshold_rule::sum: the level is a function of the row, defined by sum p = const. With y = -dp/dlevel, dL = sum_j
  /// dp_j (h_j - sum y h / sum y) / sum p.
  /// threshold_rule::selection: the same with y = p and a constant level. But the weights also move against the
  /// reference, the first of the highest logits: by -sum_j p_j' (h_j - mean) / sum p. The code adds p_j to -p_j'; the
  /// added terms sum to 0. The result is then exactly 0 for an exponential.
  template <class Bound>
  void candidates(Bound const& f, weighed_row<T> const& w) {
    T const zero(0);
    T poison(0);
    for (T const& a : seen_.logits) poison = poison + nan_carrier(a);
    if (scalar<T>::all(w.earned == zero) && scalar<T>::all(poison == zero)) return;
    constexpr bool selects = is.threshold == threshold_rule::selection;
    candidate_threshold<D> at{D(w.level.reference), D(w.level.level), D(w.level.cut), D(w.level.last)};
    if constexpr (!selects) at.level.tangent[level] = T(1);
    std::vector<D> p;
    compensated<T> slope, gain, lag, lag_gain;
    for (std::size_t n = 0; n < logits_.size(); ++n) {
      D logit = logits_[n];
      if constexpr (selects) logit.tangent[level] = T(1);  // a free direction: it takes p' itself
      p.push_back(f.normalizer.weight(at, logit, key<D>{D(T(double(seen_.keys[n])))}));
      T const y = selects ? p.back().value : T(-p.back().tangent[level]);
      slope.add(y);
      gain.add(chained(by_weight_[n], y));
      if (!selects || scalar<T>::all(p.back().value == zero)) continue;
      T const rest = p.back().value - p.back().tangent[level];
      lag.add(rest);
      lag_gain.add(chained(by_weight_[n], rest));
    }
    T const mean = gain.value() / slope.value();
    // The sum of a deformed exponential is 1 up to rounding: dividing by it would only disturb exact ties.
    T const rounding = T(double(logits_.size() + 8)) * scalar<T>::epsilon();
    T const sum = math::select(math::abs(T(w.earned - T(1))) <= rounding, T(1), w.earned);
    for (std::size_t n = 0; n < logits_.size(); ++n)
      along_directions(n, [&](int k) { return chained(p[n].tangent[k], T((by_weight_[n] - mean) / sum)) + poison; });
    if constexpr (selects) {
      std::size_t top = 0;
      while (top < logits_.size() && !scalar<T>::all(logits_[top].value == w.level.reference)) ++top;
      T const through_reference = (lag_gain.value() - mean * lag.value()) / sum;
      if (top < logits_.size() && !scalar<T>::all(through_reference == zero))
        along_directions(top, [&](int k) { return chained(logits_[top].tangent[k], through_reference); });
    }
  }

  /// Whether key n is outside the support: then its value is never read.
  static bool outside_support(weighed_row<T> const& w, std::size_t n) {
    return is.family == row_family::sparse_support && scalar<T>::all(w.weights[n] == T(0));
  }
  /// Adds move(direction) to the contractions' gradients of key n and to the parameters.
  template <class Move>
  void along_directions(std::size_t n, Move const& move) {
    for (int c = 0; c < pairs; ++c) {
      T& to = by_pair_.at(n, c);
      to = to + move(c);
    }
    for (int s = 0; s < numbers_moved; ++s)
      by_parameter_[std::size_t(s)] = by_parameter_[std::size_t(s)] + move(first_parameter + s);
  }

  /// Adds the gradients of a gate's parameters. `factor`: the gate's factor, with the gate's input as direction 0.
  void by_factor(T const& gain, D const& factor) {
    for (int s = 0; s < parameters; ++s)
      by_parameter_[std::size_t(s)] =
          by_parameter_[std::size_t(s)] + chained(gain, factor.tangent[first_parameter + s]);
  }
  T ground_value(index_t c) const { return read_shared<T>(in_.v0, b_, h_, i_, c); }
  /// The number that key n adds to feature c of the value sum, for a weight of 1.
  template <class Bound>
  T value(Bound const& f, std::size_t n, index_t c) const {
    reference_contraction<T, Op, View> const contract{op_, in_, p_, numbers_};
    return value_of_pair(contract, f, b_, h_, i_, v_head_, seen_.keys[n], c);
  }
  template <class Bound>
  void pull_value([[maybe_unused]] Bound const& f, T const& weight, index_t j) {
    reference_contraction<T, Op, View> const contract{op_, in_, p_, numbers_};
    for (index_t c = 0; c < p_.value_width; ++c) {
      T const move = weight * by_out_[std::size_t(c)];
      pull_terms_of_pair(contract, to_, b_, h_, i_, j, c, move);
      if constexpr (Op::has_value_gate) {
        D const factor = f.value_gate.factor(D::variable(read_shared<T>(in_.value_gate, b_, v_head_, j, c), 0));
        to_.add(field::v, b_, v_head_, j, c, T(move * factor.value));
        to_.add(field::value_gate, b_, v_head_, j, c, T(move * read<T>(in_.v, b_, v_head_, j, c) * factor.tangent[0]));
        by_factor(T(move * read<T>(in_.v, b_, v_head_, j, c)), factor);
      } else {
        to_.add(field::v, b_, v_head_, j, c, move);
      }
    }
  }

  Op const& op_;
  inputs<Op, View> const& in_;
  problem_shape const& p_;
  Cotangents const& d_;
  lift<T> const& numbers_;
  dense_gradients<T>& to_;
  index_t b_ = 0, h_ = 0, i_ = 0, v_head_ = 0;
  bool first_pass_ = true;
  visible_keys<T> seen_;
  std::vector<D> logits_;  ///< of the visible keys
  std::vector<pair_factor<D, Op>> factors_;
  row_contractions<T> by_pair_;  ///< gradients by the contractions
  T by_lse_, by_ground_, ground_gain_;
  std::vector<T> by_out_, gains_, by_weight_, by_parameter_;  ///< gains_: <do, v_n>
};

}  // namespace attune::detail
