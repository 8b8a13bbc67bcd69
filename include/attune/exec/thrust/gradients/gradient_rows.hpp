// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   record of a row  ->  for each key:  d contractions, weight, d parameters
//
// A first program saves a few numbers of each row. From these, every other program computes what a pair contributes, on
// the query side and on the key side alike. The row rules are in exec/row_slopes.hpp.
#pragma once

#include <attune/exec/row_slopes.hpp>
#include <attune/exec/thrust/forward.hpp>
#include <attune/operators/entries.hpp>

namespace attune::exec_thrust {

/// The numbers of a row that its pairs need.
template <class T>
struct mass_record {
  T reference, ground_weight;
  attune::detail::mass_pair<T> pair;
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
  attune::detail::candidate_slopes<T> slopes;
  T factor, poison;
  /// With threshold_rule::selection: the first key with the highest logit. It also gets slopes.through_reference.
  index_t reference_key;
};
template <class T, class Op>
struct row_record {
  std::conditional_t<Op::normalizer_is.family == row_family::masses, mass_record<T>,
                     std::conditional_t<Op::normalizer_is.family == row_family::range_weighted, adjusted_record<T>,
                                        candidate_record<T>>>
      is;
  index_t visible;
};

/// Everything that the programs of one VJP share.
template <class T, class Op>
struct gradient_call {
  static constexpr int parameters = parameter_count<Op>;
  served_problem<T, Op> at;
  tensor<T const> d_out, d_lse, d_ground_weight;  ///< cotangents, d_out before the output gate; absent: 0
  row_record<T, Op>* records;                     ///< B H Lq
  T* row_parameters;                              ///< B H Lq x parameters
  derived_pairs<T, Op> derived = {};

  ATTUNE_HD index_t row_number(index_t b, index_t h, index_t i) const { return at.row_number(b, h, i); }
  ATTUNE_HD static T number(tensor<T const> const& x, index_t b, index_t h, index_t i) {
    return x.absent() ? T(0) : x(b, h, i, 0);
  }
};

/// h_j = <do, v_j>, with the same bits at every call. So a key with which nothing competes gets a gradient of exactly
/// 0.
template <class T, class Op>
ATTUNE_HD ATTUNE_PROGRAM T gain_of_value(gradient_call<T, Op> const& call, row_pairs<T, Op> const& pairs,
                                         typename row_pairs<T, Op>::bound const& f, index_t j) {
  T sum(0);
  if (call.d_out.absent()) return sum;
  features const d_out(call.d_out, pairs.b, pairs.h, pairs.i, 0);
  auto const value = values_of_pair(pairs, f, j, 0);
  for (index_t d = 0; d < call.at.p.value_width; ++d) sum = sum + d_out[d] * value(d);
  return rounded_here(sum);
}

/// h_j = f_j <do, v_j>, with what multiplies the weight of the pair.
template <class T, class Op>
ATTUNE_HD T gated_gain(gradient_call<T, Op> const& call, row_pairs<T, Op> const& pairs,
                       typename row_pairs<T, Op>::bound const& f, index_t j) {
  return pair_factor(pairs, f, j)(gain_of_value(call, pairs, f, j));
}

/// The record of a row, and the gradients of its parameters through the row as a whole.
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
    using sums_type = attune::detail::candidate_sums<T, normalizer::traits.threshold>;
    using D = typename sums_type::D;
    T const zero(0);
    recomputed_column<T, Op> column(pairs, f, index_t(r.visible));
    candidate_threshold<T> const level = f.normalizer.solve(column);
    candidate_threshold<D> const at = sums_type::moving(level);
    auto const moving = call.at.op.normalizer.bind(attune::detail::standing<D>(r, f.logit_shift));
    sums_type sums;
    T poison = zero;
    to.reference_key = -1;
    pairs.for_each_key([&](index_t j) {
      T const a = same_logit(pairs, f, j);
      poison = poison + nan_carrier(a);
      D const p = moving.weight(at, sums_type::moving(a), key<D>{D(T(double(j)))});
      sums.weights = sums.weights + p.value;
      sums.add(p, p.value == zero ? zero : gated_gain(call, pairs, f, j));
      if constexpr (sums_type::selects)
        if (to.reference_key < 0 && a == level.reference && !(p.value == zero)) to.reference_key = j;
    });
    to.level = level;
    to.poison = poison;
    to.factor = finish_candidates(f.normalizer, level, sums.weights, poison).value_factor;
    to.slopes = sums.finish(r.visible);
  }

  template <class Record>
  ATTUNE_HD void masses(pairs_type const& pairs, row<T> const& r, bound const& f, Record& to, T* by_parameter) const {
    auto state = row_state<T, accumulators<T, 1>>::template empty<normalizer>(f.normalizer, 1);
    [[maybe_unused]] T low = math::infinity<T>(), high = initial_max<T>();
    [[maybe_unused]] index_t lowest_key = -1, highest_key = -1;
    for_each_pair(pairs, f, [&](index_t j, T const* x) {
      call.derived.store(pairs, j, x);
      T const a = f.logit(x, key<T>{T(double(j))}), h = gated_gain(call, pairs, f, j);
      state.template accumulate<normalizer>(f.normalizer, a, [&](index_t) { return h; });
      if (a < low && a > -math::infinity<T>()) low = a, lowest_key = j;
      if (a > high) high = a, highest_key = j;
      return true;
    });
    T const d_lse = call.number(call.d_lse, pairs.b, pairs.h, pairs.i);
    if constexpr (normalizer::traits.family == row_family::range_weighted) {
      using D = dual<T, 3 + parameters>;  // lowest and highest logit, row constant, parameters
      lift<D> const moving{{}, {0, parameters, 3}};
      auto const all = call.at.op.bind(lifted(r, moving));
      row<D> ends = lifted(r, moving);
      ends.logit_shift = D::variable(f.logit_shift, 2);
      auto const s = attune::detail::slopes_of_adjusted<normalizer::traits.detached_ends, 3 + parameters, 1>(
          call.at.op.normalizer.bind(ends), state.reference, state.earned, state.lowest, state.acc[0], state.second[0],
          d_lse);
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
      auto const s = attune::detail::slopes_of_masses<Op>(all.normalizer, state.reference, state.earned, state.ground,
                                                          moving.visible, all.logit_shift,
                                                          {state.acc[0], plain_sum, ground_gain(pairs), d_lse});
      to.reference = state.reference;
      to.ground_weight = s.done.ground_weight.value;
      to.pair = s.pair();
      for (int k = 0; k < parameters; ++k) by_parameter[k] = s.by[2 + k];
    }
  }
  /// h_0 = <do, v0> + dw0
  ATTUNE_HD T ground_gain([[maybe_unused]] pairs_type const& pairs) const {
    T gain(0);
    if constexpr (Op::has_ground_weight) gain = call.number(call.d_ground_weight, pairs.b, pairs.h, pairs.i);
    if constexpr (Op::uses(field::v0))
      for (index_t d = 0; d < call.at.p.value_width && !call.d_out.absent(); ++d)
        gain = gain + call.d_out(pairs.b, pairs.h, pairs.i, d) *
                          attune::detail::shared_element<T>(call.at.in.v0, pairs.b, pairs.h, pairs.i, d);
    return gain;
  }
};

/// The contributions of a pair. The last of the gradients by contractions is the gradient by the logit, if a program
/// needs it.
template <class T, int Pairs>
struct pair_gradient {
  T weight, by_contraction[Pairs + 1];
};

/// A row that computes what each of its pairs contributes; if `Parameters`, also to the parameters.
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

  /// If `Parameters`, adds to by_parameter, which has parameter_count<Op> numbers.
  ATTUNE_HD pair_gradient<T, pairs> operator()(index_t j, [[maybe_unused]] T* by_parameter = nullptr) const {
    using attune::detail::chained;
    constexpr normalizer_traits is = Op::normalizer_is;
    T x[pairs + 1];
    view.contract(x, j);
    call_.derived.read(view, j, x);
    D moved[pairs + 1];
    for (int c = 0; c < pairs; ++c) moved[c] = D::variable(x[c], c);
    key<D> const at{D(T(double(j)))};
    D const logit = moving.logit(moved, at);
    pair_gradient<T, pairs> to;
    T by_logit;
    moving_factor<T, Op, D> factor(view, moving, moved, j);
    auto const gated = [&] { return factor(gain_of_value(call_, view, f, j)); };
    auto const& row = record_.is;
    if constexpr (is.family == row_family::masses) {
      T const a = f.logit(x, key<T>{T(double(j))}), h = gated();
      auto const pulled = row.pair.template pull<Op, D, first, parameters, chain_rule::guarded>(
          moving.normalizer, a, row.reference, h * row.pair.factor + row.pair.by_earned,
          [&](int s, T const& by) { by_parameter[s] = by_parameter[s] + by; });
      to.weight = pulled.weight;
      by_logit = pulled.by_logit;
    } else if constexpr (is.family == row_family::range_weighted) {
      T const a = f.logit(x, key<T>{T(double(j))}), h = gated();
      auto const pulled = row.pair.pull(a, row.reference, h);
      to.weight = pulled.weight;
      T through_ends(0);
      if (j == row.lowest_key) through_ends = row.through_lowest;
      if (j == row.highest_key) through_ends = through_ends + row.through_highest;
      by_logit = (pulled.by_range + through_ends) + pulled.by_rest;
    } else {
      candidate_threshold<D> const level{D(row.level.reference), D(row.level.level), D(row.level.cut),
                                         D(row.level.last)};
      D const p = moving.normalizer.weight(level, D::variable(same_logit(view, f, j), 0), at);
      T const h = p.value == T(0) ? T(0) : gated();
      T const by_p = row.slopes.by_weight(h);
      by_logit = chained(p.tangent[0], by_p) + row.poison;
      if (j == row.reference_key && !(row.slopes.through_reference == T(0)))
        by_logit = by_logit + row.slopes.through_reference;
      to.weight = p.value * row.factor;
      for (int s = 0; s < parameters; ++s)
        by_parameter[s] = by_parameter[s] + (chained(p.tangent[first + s], by_p) + row.poison);
    }
    for (int c = 0; c < pairs; ++c) to.by_contraction[c] = chained(by_logit, logit.tangent[c]);
    if constexpr (attune::detail::has_entries<Op>) to.by_contraction[pairs] = by_logit;
    for (int s = 0; s < parameters; ++s)
      by_parameter[s] = by_parameter[s] + chained(by_logit, logit.tangent[first + s]);
    factor.template pull<first, parameters>(to, by_parameter);
    call_.derived.template pull<first, parameters>(view, moving, j, x, moved, to.by_contraction, by_parameter);
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
