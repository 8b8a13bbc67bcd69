// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   record of a row  ->  for each key:  d contractions, weight, d parameters
//
// A first program leaves a few numbers of each row; from these every other program computes what a pair contributes, from the
// side of the query or of the key alike. The row rules are those of exec/row_slopes.hpp.
#pragma once

#include <attune/exec/row_slopes.hpp>
#include <attune/exec/thrust/forward.hpp>

namespace attune::exec_thrust {

/// What a pair needs to know of its row.
template <class T>
struct mass_record {
  T reference, factor, share, ground_weight, by_earned, by_ground;
};
template <class T>
struct adjusted_record {
  T reference, through_lowest, through_highest;
  attune::detail::adjusted_pair<T> pair;
  index_t lowest_key, highest_key;  ///< the first keys that have the extreme logits
};
template <class T>
struct candidate_record {
  candidate_threshold<T> level;
  T factor, mean, inverse_sum, poison;
  T through_reference;  ///< of a selection: what the first of the highest logits gets besides
  index_t reference_key;
};
template <class T, class Op>
struct row_record {
  std::conditional_t<
      Op::normalizer_is.family == row_family::masses, mass_record<T>,
      std::conditional_t<Op::normalizer_is.family == row_family::adjusted, adjusted_record<T>, candidate_record<T>>>
      is;
  index_t visible;
};

/// Everything that the programs of one VJP share.
template <class T, class Op>
struct gradient_call {
  static constexpr int parameters = parameter_count<Op>;
  served_problem<T, Op> at;
  tensor<T const> by_out, by_lse, by_ground;  ///< cotangents, that of out behind the output gate; absent: 0
  row_record<T, Op>* records;                 ///< B H Lq
  T* row_parameters;                          ///< B H Lq x parameters

  ATTUNE_HD index_t row_number(index_t b, index_t h, index_t i) const { return at.row_number(b, h, i); }
  ATTUNE_HD static T number(tensor<T const> const& x, index_t b, index_t h, index_t i) {
    return x.absent() ? T(0) : x(b, h, i, 0);
  }
};

/// h_j = <do, v_j>: the same bits wherever it is asked for, so that what nothing competes with gets a gradient of exactly 0.
template <class T, class Op>
ATTUNE_HD ATTUNE_PROGRAM T gain_of_value(gradient_call<T, Op> const& call, row_pairs<T, Op> const& pairs,
                                         typename row_pairs<T, Op>::bound const& f, index_t j) {
  T sum(0);
  if (call.by_out.absent()) return sum;
  features const by_out(call.by_out, pairs.b, pairs.h, pairs.i, 0);
  auto const value = pairs.values(f, j, 0);
  for (index_t d = 0; d < call.at.p.value_width; ++d) sum = sum + by_out[d] * value(d);
  return sum;
}

/// A row of numbers that stand still.
template <class D, class T>
ATTUNE_HD row<D> standing(row<T> const& r, T const& logit_shift) {
  row<D> s = lifted(r, lift<D>{});
  s.logit_shift = D(logit_shift);
  return s;
}

/// The record of a row, and what its parameters get of the row as a whole.
template <class T, class Op>
struct record_program {
  using normalizer = typename Op::normalizer_policy;
  using pairs_type = row_pairs<T, Op>;
  using bound = typename pairs_type::bound;
  static constexpr int parameters = parameter_count<Op>;

  gradient_call<T, Op> call;

  ATTUNE_HD index_t tasks() const { return row_task::count(call.at.p, 1); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, call.at.p, 1);
    if (!call.at.serves(t.h)) return;
    pairs_type const pairs{call.at, t.b, t.h, t.i};
    row<T> const r = pairs.facts();
    auto const f = call.at.op.bind(r);
    index_t const number = call.row_number(t.b, t.h, t.i);
    row_record<T, Op>& to = call.records[number];
    to.visible = index_t(r.visible);
    if constexpr (Op::has_threshold)
      candidates(pairs, r, f, to.is);
    else
      masses(pairs, r, f, to.is, call.row_parameters + number * parameters);
  }

 private:
  ATTUNE_HD void candidates(pairs_type const& pairs, row<T> const& r, bound const& f, candidate_record<T>& to) const {
    using D = dual<T, 1>;
    constexpr bool selects = normalizer::traits.threshold == threshold_rule::selection;
    T const zero(0), one(1);
    recomputed_column<T, Op> column(pairs, f, index_t(r.visible));
    candidate_threshold<T> const level = f.normalizer.solve(column);
    auto const moving = call.at.op.normalizer.bind(standing<D>(r, f.logit_shift));
    candidate_threshold<D> const at{D(level.reference), selects ? D(level.level) : D::variable(level.level, 0), D(level.cut),
                                    D(level.last)};
    T sum = zero, slope = zero, gains = zero, poison = zero, lag = zero, lag_gains = zero;
    to.reference_key = -1;
    pairs.for_each_key([&](index_t j) {
      T const a = same_logit(pairs, f, j);
      poison = poison + candidate_poison(a);
      D const p = moving.weight(at, selects ? D::variable(a, 0) : D(a), key<D>{D(T(double(j)))});
      sum = sum + p.value;
      T const y = selects ? p.value : T(-p.tangent[0]);
      slope = slope + y;
      if (p.value == zero) return;
      T const h = gain_of_value(call, pairs, f, j);
      gains = gains + attune::detail::chained(h, y);
      if constexpr (selects) {
        T const rest = p.value - p.tangent[0];
        lag = lag + rest;
        lag_gains = lag_gains + attune::detail::chained(h, rest);
        if (to.reference_key < 0 && a == level.reference) to.reference_key = j;
      }
    });
    to.level = level;
    to.poison = poison;
    to.factor = finish_candidates(f.normalizer, level, sum, poison).value_factor;
    to.mean = slope == zero ? zero : gains / slope;
    // The sum of a deformed exponential is 1 up to rounding: dividing by it would only move exact ties.
    T const rounding = (r.visible + T(8)) * scalar<T>::epsilon();
    T const whole = math::abs(T(sum - one)) <= rounding ? one : sum;
    to.inverse_sum = whole == zero ? zero : one / whole;
    to.through_reference = selects ? (lag_gains - to.mean * lag) * to.inverse_sum : zero;
  }

  template <class Record>
  ATTUNE_HD void masses(pairs_type const& pairs, row<T> const& r, bound const& f, Record& to, T* by_parameter) const {
    auto state = row_state<T, accumulators<T, 1>>::template empty<normalizer>(f.normalizer, 1);
    [[maybe_unused]] T low = math::infinity<T>(), high = unseen_reference<T>();
    [[maybe_unused]] index_t lowest_key = -1, highest_key = -1;
    pairs.for_each_key([&](index_t j) {
      T const a = pairs.logit(f, j), h = gain_of_value(call, pairs, f, j);
      state.template absorb<normalizer>(f.normalizer, a, [&](index_t) { return h; });
      if (a < low && a > -math::infinity<T>()) low = a, lowest_key = j;
      if (a > high) high = a, highest_key = j;
    });
    T const by_lse = call.number(call.by_lse, pairs.b, pairs.h, pairs.i);
    if constexpr (normalizer::traits.family == row_family::adjusted) {
      using D = dual<T, 3 + parameters>;  // lowest and highest logit, row constant, parameters
      lift<D> const moving{{}, {0, parameters, 3}};
      auto const all = call.at.op.bind(lifted(r, moving));
      row<D> ends = lifted(r, moving);
      ends.logit_shift = D::variable(f.logit_shift, 2);
      auto const s = attune::detail::slopes_of_adjusted<normalizer::traits.detached_ends, 3 + parameters, 1>(
          call.at.op.normalizer.bind(ends), state.reference, state.earned, state.lowest, state.acc[0], state.second[0], by_lse);
      to.reference = state.reference;
      to.through_lowest = s.by[0];
      to.through_highest = s.by[1];
      to.pair = s.pair;
      to.lowest_key = lowest_key;
      to.highest_key = highest_key;
      for (int k = 0; k < parameters; ++k)
        by_parameter[k] = s.by[3 + k] + attune::detail::chained(s.by[2], all.logit_shift.tangent[3 + k]);
    } else {
      using D = dual<T, 2 + parameters>;  // earned and ground mass, parameters
      row<D> const moving = lifted(r, lift<D>{{}, {0, parameters, 2}});
      auto const all = call.at.op.bind(moving);
      T const plain_sum = row_state<T>::template has_second<normalizer> ? state.second[0] : T(0);
      auto const s =
          attune::detail::slopes_of_masses<Op>(all.normalizer, state.reference, state.earned, state.ground, moving.visible,
                                               all.logit_shift, {state.acc[0], plain_sum, ground_gain(pairs), by_lse});
      to.reference = state.reference;
      to.factor = s.done.value_factor.value;
      to.share = s.done.share.value;
      to.ground_weight = s.done.ground_weight.value;
      to.by_earned = s.by[0] / s.earned_unit;
      to.by_ground = s.by[1] / s.ground_unit;
      for (int k = 0; k < parameters; ++k) by_parameter[k] = s.by[2 + k];
    }
  }
  /// h_0 = <do, v0> + dw0
  ATTUNE_HD T ground_gain([[maybe_unused]] pairs_type const& pairs) const {
    T gain(0);
    if constexpr (Op::has_ground_weight) gain = call.number(call.by_ground, pairs.b, pairs.h, pairs.i);
    if constexpr (Op::uses(field::v0))
      for (index_t d = 0; d < call.at.p.value_width && !call.by_out.absent(); ++d)
        gain = gain + call.by_out(pairs.b, pairs.h, pairs.i, d) *
                          attune::detail::shared_element<T>(call.at.in.v0, pairs.b, pairs.h, pairs.i, d);
    return gain;
  }
};

/// What a pair contributes.
template <class T, int Pairs>
struct pair_gradient {
  T weight, by_contraction[Pairs + 1];
};

/// A row, ready to say what each of its pairs contributes; to parameters too where `Parameters`.
template <class T, class Op, bool Parameters>
class row_gradients {
 public:
  static constexpr int pairs = Op::contractions::size, first = pairs > 1 ? pairs : 1;
  static constexpr int parameters = Parameters ? parameter_count<Op> : 0;
  using D = dual<T, first + parameters>;
  using moving_bound = decltype(std::declval<Op const&>().bind(std::declval<row<D> const&>()));
  using bound = typename row_pairs<T, Op>::bound;

  ATTUNE_HD row_gradients(gradient_call<T, Op> const& call, index_t b, index_t h, index_t i)
      : call_(call), view{call.at, b, h, i}, record_(call.records[call.row_number(b, h, i)]),
        facts_(attune::detail::row_of_count<T>(call.at.p, record_.visible, b, h, i)), f(call.at.op.bind(facts_)),
        moving(bind(call, facts_)) {}

  /// Adds to by_parameter, parameter_count<Op> numbers, where `Parameters`.
  ATTUNE_HD pair_gradient<T, pairs> operator()(index_t j, [[maybe_unused]] T* by_parameter = nullptr) const {
    using attune::detail::chained;
    constexpr normalizer_traits is = Op::normalizer_is;
    T x[pairs + 1];
    view.contract(x, j);
    D moved[pairs + 1];
    for (int c = 0; c < pairs; ++c) moved[c] = D::variable(x[c], c);
    key<D> const at{D(T(double(j)))};
    D const logit = moving.logit(moved, at);
    pair_gradient<T, pairs> to;
    T by_logit;
    auto const& row = record_.is;
    if constexpr (is.family == row_family::masses) {
      T const a = f.logit(x, key<T>{T(double(j))}), h = gain_of_value(call_, view, f, j);
      D const reference(row.reference), e = moving.normalizer.earned(D::variable(a, 0), reference);
      T const by_e = h * row.factor + row.by_earned;
      by_logit = chained(by_e, e.tangent[0]);
      to.weight = e.value * row.factor;
      if constexpr (is.uniform_share) to.weight = to.weight + row.share;
      for (int s = 0; s < parameters; ++s) by_parameter[s] = by_parameter[s] + chained(by_e, e.tangent[first + s]);
      if constexpr (is.ground_mass) {
        D const g = moving.normalizer.ground(D::variable(a, 0), reference);
        by_logit = by_logit + chained(row.by_ground, g.tangent[0]);
        for (int s = 0; s < parameters; ++s) by_parameter[s] = by_parameter[s] + chained(row.by_ground, g.tangent[first + s]);
      }
      by_logit = math::select(row.factor == row.factor, by_logit, row.factor);  // a row of NaN: by every key that it sees
    } else if constexpr (is.family == row_family::adjusted) {
      T const a = f.logit(x, key<T>{T(double(j))}), h = gain_of_value(call_, view, f, j);
      auto const pulled = row.pair.pull(a, row.reference, h);
      to.weight = pulled.weight;
      T through_ends(0);
      if (j == row.lowest_key) through_ends = row.through_lowest;
      if (j == row.highest_key) through_ends = through_ends + row.through_highest;
      by_logit = (pulled.by_range + through_ends) + pulled.by_rest;
    } else {
      candidate_threshold<D> const level{D(row.level.reference), D(row.level.level), D(row.level.cut), D(row.level.last)};
      D const p = moving.normalizer.weight(level, D::variable(same_logit(view, f, j), 0), at);
      T const h = p.value == T(0) ? T(0) : gain_of_value(call_, view, f, j);
      T const by_p = (h - row.mean) * row.inverse_sum;
      by_logit = chained(p.tangent[0], by_p) + row.poison;
      if (j == row.reference_key && !(row.through_reference == T(0))) by_logit = by_logit + row.through_reference;
      to.weight = p.value * row.factor;
      for (int s = 0; s < parameters; ++s)
        by_parameter[s] = by_parameter[s] + (chained(p.tangent[first + s], by_p) + row.poison);
    }
    for (int c = 0; c < pairs; ++c) to.by_contraction[c] = chained(by_logit, logit.tangent[c]);
    for (int s = 0; s < parameters; ++s) by_parameter[s] = by_parameter[s] + chained(by_logit, logit.tangent[first + s]);
    return to;
  }

 private:
  ATTUNE_HD static moving_bound bind(gradient_call<T, Op> const& call, row<T> const& facts) {
    if constexpr (Parameters) {
      return call.at.op.bind(lifted(facts, lift<D>{{}, {0, parameters, first}}));
    } else {
      return call.at.op.bind(lifted(facts, lift<D>{}));
    }
  }

  gradient_call<T, Op> const& call_;

 public:
  row_pairs<T, Op> view;

 private:
  row_record<T, Op> const& record_;
  row<T> facts_;

 public:
  bound f;
  moving_bound moving;
};

}  // namespace attune::exec_thrust
