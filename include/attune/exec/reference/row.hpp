// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   logits of a row -> weights, w0, lse, threshold
//
// One row as textbooks write it, with all keys available at once. The dense forward pass stores it, and the gradients
// start from it.
#pragma once

#include <vector>

#include <attune/exec/reference/compensated.hpp>
#include <attune/exec/reference/contractions/ordered.hpp>
#include <attune/exec/reference/value_term.hpp>
#include <attune/exec/reference/weight_gate.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/candidates.hpp>

namespace attune::detail {

/// The visible keys of a row.
template <class T>
struct visible_keys {
  std::vector<index_t> keys;
  std::vector<T> scores, logits;  ///< logits without the row constant
};

/// The results of a normalizer for the visible keys. `weights` sum to the row sum, uniform share included.
template <class T>
struct weighed_row {
  std::vector<T> weights;
  T ground_weight = T(0), lse = T(0), threshold = T(0);  ///< lse without the row constant
  T reference = T(0), earned = T(0), ground = T(0);      ///< families masses and range_weighted: the state
  T lowest = T(0), highest = T(0);                       ///< family range_weighted: the extreme finite logits
  candidate_threshold<T> level{};                        ///< family sparse_support
};

/// The contractions of the visible keys of a row, in ascending order. Appends these keys. f: the operator, bound to the
/// row.
template <class T, class Op, class View, class Bound>
row_contractions<T> contractions_of_row(reference_contraction<T, Op, View> const& contract, Bound const& f, index_t b,
                                        index_t h, index_t i, key_interval range, std::vector<index_t>& keys) {
  mask_row const r = contract.p.row(b, h, i);
  row_contractions<T> all{Op::contractions::size, {}};
  for (key_interval k = mask::next(contract.op.mask, r, range.first); !k.empty() && k.first < range.last;
       k = mask::next(contract.op.mask, r, k.last))
    for (index_t j = k.first; j < k.last && j < range.last; ++j) {
      contract.all(all.add_key(), b, h, i, j);
      keys.push_back(j);
    }
  sum_in_order(contract, f, all, b, h, i);
  return all;
}
/// Calls visit(j, score, logit') for every visible key of a row, in ascending order.
template <class T, class Op, class View, class Bound, class Visit>
void for_each_visible(reference_contraction<T, Op, View> const& contract, Bound const& f, index_t b, index_t h,
                      index_t i, key_interval range, Visit const& visit) {
  std::vector<index_t> keys;
  row_contractions<T> const all = contractions_of_row(contract, f, b, h, i, range, keys);
  for (std::size_t n = 0; n < keys.size(); ++n) {
    T const s = f.score(all.of(n), key<T>{T(double(keys[n]))});
    visit(keys[n], s, f.logit_of_score(s, all.of(n)));
  }
}

/// Family masses.
template <class Normalizer, class Bound, class T>
weighed_row<T> weigh_masses(Bound const& normalizer, visible_keys<T> const& row, T const& visible) {
  constexpr normalizer_traits is = Normalizer::traits;
  weighed_row<T> r;
  r.reference = initial_reference<Normalizer, Bound, T>(normalizer);
  if constexpr (is.reference == mass_reference::running_maximum)
    for (T const& a : row.logits) r.reference = math::larger(r.reference, a);
  compensated<T> earned, ground;
  for (T const& a : row.logits) {
    r.weights.push_back(normalizer.earned(a, r.reference));
    earned.add(r.weights.back());
    if constexpr (is.ground_mass) ground.add(normalizer.ground(a, r.reference));
  }
  r.earned = earned.value();
  r.ground = ground.value();
  auto const done = finish_masses<Normalizer>(normalizer, r.reference, r.earned, r.ground, visible);
  for (T& w : r.weights) w = w * done.value_factor + done.share;
  r.ground_weight = done.ground_weight;
  r.lse = done.lse;
  return r;
}

/// Family range_weighted: softmax times the position of the logit between the two ends.
template <class Normalizer, class Bound, class T>
weighed_row<T> weigh_adjusted(Bound const& normalizer, visible_keys<T> const& row) {
  T const off = -math::infinity<T>(), zero(0);
  weighed_row<T> r;
  r.reference = initial_max<T>();
  r.lowest = math::infinity<T>();
  for (T const& a : row.logits) {
    r.reference = math::larger(r.reference, a);
    r.lowest = math::select(a == off, r.lowest, math::smaller(r.lowest, a));
  }
  r.highest = r.reference;
  compensated<T> earned;
  for (T const& a : row.logits) {
    r.weights.push_back(math::exp_nonpositive(T(a - r.reference)));
    earned.add(r.weights.back());
  }
  r.earned = earned.value();
  auto const finished = finish_adjusted(normalizer, r.reference, r.earned, r.lowest, r.highest);
  for (std::size_t n = 0; n < r.weights.size(); ++n) {
    T const place = math::select(row.logits[n] == off, zero, T(row.logits[n] - finished.low));
    r.weights[n] = r.weights[n] * place * finished.value_factor;
  }
  r.lse = finished.lse;
  return r;
}

/// Family sparse_support.
template <class Bound, class T>
weighed_row<T> weigh_candidates(Bound const& normalizer, visible_keys<T> const& row) {
  weighed_row<T> r;
  candidate_column<T> column(row.logits, row.keys);
  r.level = normalizer.solve(column);
  compensated<T> sum;
  T poison(0);
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    r.weights.push_back(normalizer.weight(r.level, row.logits[n], key<T>{T(double(row.keys[n]))}));
    sum.add(r.weights.back());
    poison = poison + nan_carrier(row.logits[n]);
  }
  r.earned = sum.value();
  auto const done = finish_candidates(normalizer, r.level, r.earned, poison);
  for (T& w : r.weights) w = w * done.value_factor;
  r.threshold = done.threshold;
  return r;
}

template <class Normalizer, class Bound, class T>
weighed_row<T> weigh(Bound const& normalizer, visible_keys<T> const& row, T const& visible) {
  if constexpr (Normalizer::traits.family == row_family::masses)
    return weigh_masses<Normalizer>(normalizer, row, visible);
  else if constexpr (Normalizer::traits.family == row_family::range_weighted)
    return weigh_adjusted<Normalizer>(normalizer, row);
  else
    return weigh_candidates(normalizer, row);
}

/// v_jd after the value gate.
template <class T, class Op, class View, class Bound>
T gated_value(inputs<Op, View> const& in, [[maybe_unused]] Bound const& f, index_t b, index_t v_head, index_t j,
              index_t d) {
  T const v = read<T>(in.v, b, v_head, j, d);
  if constexpr (Op::has_value_gate)
    return v * f.value_gate.factor(read_shared<T>(in.value_gate, b, v_head, j, d));
  else
    return v;
}

/// The number that key j adds to feature d of the value sum of query i, for a weight of 1: its gated value, and the
/// terms of the pair. v_head: the head of v.
template <class T, class Op, class View, class Bound>
T value_of_pair(reference_contraction<T, Op, View> const& contract, Bound const& f, index_t b, index_t h,
                [[maybe_unused]] index_t i, index_t v_head, index_t j, index_t d) {
  T const v = gated_value<T>(contract.in, f, b, v_head, j, d);
  if constexpr (Op::has_pair_values)
    return v + term_of_pair(contract, b, h, i, j, d);
  else
    return v;
}
/// Passes the gradient `move` by that number on to the terms of the pair.
template <class T, class Op, class View, class To>
void pull_terms_of_pair([[maybe_unused]] reference_contraction<T, Op, View> const& contract, [[maybe_unused]] To& to,
                        [[maybe_unused]] index_t b, [[maybe_unused]] index_t h, [[maybe_unused]] index_t i,
                        [[maybe_unused]] index_t j, [[maybe_unused]] index_t d, [[maybe_unused]] T const& move) {
  if constexpr (Op::has_pair_values) pull_term_of_pair(contract, to, b, h, i, j, d, move);
}

/// The factor of out_d.
template <class T, class Op, class View, class Bound>
T output_factor([[maybe_unused]] inputs<Op, View> const& in, [[maybe_unused]] problem_shape const& p,
                [[maybe_unused]] Bound const& f, [[maybe_unused]] index_t b, [[maybe_unused]] index_t h,
                [[maybe_unused]] index_t i, [[maybe_unused]] index_t d) {
  if constexpr (Op::has_output_gate)
    return f.output_gate.factor(read_shared<T>(in.output_gate, b, h, i, p.output_gate_width == 1 ? 0 : d));
  else
    return T(1);
}

}  // namespace attune::detail
