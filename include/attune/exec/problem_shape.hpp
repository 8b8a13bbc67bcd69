// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   H query heads, Hk key heads, Hv value heads:   head h reads key head h Hk / H and value head h Hv / H
//
// The extents of a call, the indices that row (b, h, i) reads in a tensor, and the facts that policies bind to.
#pragma once

#include <cmath>
#include <limits>

#include <attune/core/row.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune {

namespace detail {
constexpr void learn(index_t& member, index_t x) { member = x; }
constexpr void learn(int&&, index_t) {}  // always one feature: nothing to store
}  // namespace detail

/// Extents of one call.
struct problem_shape {
  index_t batch = 0,           ///< B
      heads = 0,               ///< H: query heads
      queries = 0,             ///< Lq
      keys = 0;                ///< Lk
  index_t key_heads = 1,       ///< of k
      value_heads = 1,         ///< of v and value_gate
      gate_key_heads = 1;      ///< of gate_k
  index_t sort_key_heads = 1,  ///< of sort_k
      position_key_heads = 1,  ///< of position_k
      place_heads = 1,         ///< of place
      key_bias_heads = 1;      ///< of key_bias
  index_t width = 0,           ///< D: features of q and k
      value_width = 0,         ///< Dv: features of v and out
      gate_width = 0,          ///< features of gate_q and gate_k
      position_width = 0,      ///< features of position_q and position_k
      axes = 0,                ///< features of center, spread and place
      positions = 0,           ///< features of position_scores
      output_gate_width = 0;   ///< features of output_gate: Dv or 1
  index_t first_query = 0,     ///< of a window of rows, [first_query, queries); see `window`
      all_queries = 0;         ///< Lq of the problem that has these rows; 0: `queries`, no window

  /// The position of query 0 of a batch element among its keys.
  ATTUNE_HD constexpr index_t offset_of(index_t b) const { return offsets_ == nullptr ? offset_ : offsets_[b]; }
  /// One position for all batch elements.
  constexpr void set_offset(index_t offset) { offset_ = offset, offsets_ = nullptr; }
  /// B positions, where the programs of a call read them.
  constexpr void set_offsets(index_t const* offsets) { offsets_ = offsets; }
  /// Whether each batch element has its own position.
  constexpr bool has_offsets() const { return offsets_ != nullptr; }

  /// The head that query head h reads in a tensor with `group_heads` heads.
  ATTUNE_HD constexpr index_t group(index_t h, index_t group_heads) const { return h * group_heads / heads; }
  /// The facts about row (b, h, i) that masks read.
  ATTUNE_HD constexpr mask_row row(index_t b, index_t h, index_t i) const {
    return {b, h, i, i + offset_of(b), whole_queries(), keys};
  }

  /// The problem of the rows [of.first, of.last) alone. Indices and positions still count in the whole problem, so
  /// `queries` is where the rows end. A tensor with a row per query has this extent too. Its rows before the window are
  /// not read: its memory may begin with the first row of the window.
  constexpr problem_shape window(key_interval of) const {
    problem_shape p = *this;
    p.all_queries = whole_queries();
    p.first_query = of.first;
    p.queries = of.last;
    return p;
  }
  /// Lq of the whole problem.
  ATTUNE_HD constexpr index_t whole_queries() const { return all_queries == 0 ? queries : all_queries; }
  /// The number of rows of a head that a program computes: Lq without a window.
  ATTUNE_HD constexpr index_t row_count() const { return queries - first_query; }

  /// The extents of a tensor with a row for every query: of every input that is not per key.
  ATTUNE_HD constexpr shape rows(index_t features) const { return {batch, heads, queries, features}; }
  /// The number of features of an input.
  ATTUNE_HD constexpr index_t width_of(field f) const {
    switch (f) {
#define ATTUNE_ROW(name, side, rows, heads_member, features, ...) \
  case field::name:                                               \
    return features;
      ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
    }
    return 1;
  }
  /// Stores the number of heads of a per-key input and, if the input is the `source` of its features, their number.
  constexpr void learn(field f, field source, shape const& e) {
    switch (f) {
#define ATTUNE_ROW(name, side, rows, heads_member, features, ...)                 \
  case field::name:                                                               \
    if (input_side::side == input_side::key) detail::learn(heads_member, e.head); \
    if (source == f) detail::learn(features, e.feature);                          \
    break;
      ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
    }
  }
  /// The number of heads of an input.
  ATTUNE_HD constexpr index_t heads_of(field f) const {
    switch (f) {
#define ATTUNE_ROW(name, side, rows, heads_member, ...) \
  case field::name:                                     \
    return heads_member;
      ATTUNE_FIELDS(ATTUNE_ROW)
#undef ATTUNE_ROW
    }
    return heads;
  }

 private:
  index_t offset_ = 0;  // of all batch elements, if `offsets_` is null
  index_t const* offsets_ = nullptr;
};

namespace detail {

/// The (batch, head, position) that row (b, h, i) reads in a broadcast tensor.
struct row_index {
  index_t batch, head, position;
};
template <class View>
ATTUNE_HD row_index broadcast(View const& x, index_t b, index_t h, index_t i) {
  shape const e = x.extents();
  return {e.batch == 1 ? 0 : b, e.head == 1 ? 0 : h, e.position == 1 ? 0 : i};
}

/// One element as a T.
template <class T, class View>
ATTUNE_HD T element(View const& x, row_index at, index_t d) {
  return T(x(at.batch, at.head, at.position, d));
}

/// One element of a tensor whose axes of extent 1 are shared.
template <class T, class View>
ATTUNE_HD T shared_element(View const& x, index_t b, index_t h, index_t i, index_t d) {
  return detail::element<T>(x, detail::broadcast(x, b, h, i), d);
}

/// A view with the extents `all`, except for the features. Axes of extent 1 get stride 0.
template <class E>
tensor<E> spread_over(tensor<E> const& x, shape const& all) {
  shape const e = x.extents();
  strides s = x.steps();
  if (e.batch == 1) s.batch = 0;
  if (e.head == 1) s.head = 0;
  if (e.position == 1) s.position = 0;
  return {x.data(), {all.batch, all.head, all.position, e.feature}, s};
}
template <class View>
  requires requires(View const& x, shape const& all) { x.spread_over(all); }
View spread_over(View const& x, shape const& all) {
  return x.spread_over(all);
}

/// The start of the v0 of a row.
template <class View>
auto ground_value_row(View const& v0, index_t b, index_t h, index_t i) {
  row_index const at = broadcast(v0, b, h, i);
  return v0.row(at.batch, at.head, at.position);
}

/// The row facts that policies bind to. T: a scalar, a batch of rows, or one row in every lane.
template <class T>
ATTUNE_HD row<T> row_facts(problem_shape const& p, row_place const& place, T const& position, T const& visible,
                           T const& log_visible, T const& inverse_sqrt_width, lift<T> const& numbers = {}) {
  T const no_shift = lift<T>::constant(0), keys = lift<T>::constant(double(p.keys));
  return {place, position, visible, log_visible, inverse_sqrt_width, no_shift, keys, numbers};
}
/// 1 / sqrt(D), rounded once from double.
ATTUNE_HD inline double inverse_sqrt_width(problem_shape const& p) {
  return p.width > 0 ? 1 / math::sqrt(double(p.width)) : 0;
}

/// The row that a value gate binds to. A value gate acts for all queries alike, so facts of a single query are NaN.
template <class T>
row<T> any_query_row(problem_shape const& p, index_t b, index_t h, lift<T> const& numbers = {}) {
  T const unknown = lift<T>::constant(std::numeric_limits<double>::quiet_NaN());
  return detail::row_facts<T>(p, {b, h, 0, p.whole_queries()}, unknown, unknown, unknown,
                              lift<T>::constant(detail::inverse_sqrt_width(p)), numbers);
}

/// The scalar row facts of a row with k visible keys.
template <class T>
ATTUNE_HD row<T> row_of_count(problem_shape const& p, index_t k, index_t b, index_t h, index_t i,
                              lift<T> const& numbers = {}) {
  return detail::row_facts<T>(p, {b, h, i, p.whole_queries()}, T(double(i + p.offset_of(b))), T(double(k)),
                              k > 0 ? math::log(T(double(k))) : T(0),
                              p.width > 0 ? T(T(1) / math::sqrt(T(double(p.width)))) : T(0), numbers);
}
/// The same; counts the visible keys.
template <class T, class Mask>
ATTUNE_HD row<T> scalar_row(problem_shape const& p, Mask const& m, index_t b, index_t h, index_t i,
                            lift<T> const& numbers = {}) {
  return row_of_count<T>(p, mask::count(m, p.row(b, h, i)), b, h, i, numbers);
}

}  // namespace detail
}  // namespace attune
