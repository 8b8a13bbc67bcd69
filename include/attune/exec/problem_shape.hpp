// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   H query heads, Hk key heads, Hv value heads:   head h reads key head h Hk / H and value head h Hv / H
//
// The extents of a call, and the rows of its tensors: what row (b, h, i) reads, and the facts that policies bind to.
#pragma once

#include <cmath>
#include <limits>

#include <attune/core/row.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/policies/mask/concepts.hpp>

namespace attune {

/// What the positions of an input are.
enum class input_side { query, key, pair, ground };
constexpr input_side side_of(field f) {
  switch (f) {
    case field::q:
    case field::gate_q:
    case field::sort_q:
    case field::position_q:
    case field::center:
    case field::spread:
    case field::output_gate:
      return input_side::query;
    case field::scores:
    case field::gates:
    case field::bias:
      return input_side::pair;
    case field::v0:
      return input_side::ground;
    default:
      return input_side::key;
  }
}

/// Extents of one call.
struct problem_shape {
  index_t batch = 0, heads = 0, queries = 0, keys = 0;
  index_t key_heads = 1, value_heads = 1, gate_key_heads = 1;
  index_t sort_key_heads = 1, position_key_heads = 1, place_heads = 1, key_bias_heads = 1;
  index_t width = 0, value_width = 0, gate_width = 0, position_width = 0, axes = 0, output_gate_width = 0;
  index_t offset = 0;

  /// The head of a tensor with `group_heads` heads that query head h reads.
  ATTUNE_HD constexpr index_t group(index_t h, index_t group_heads) const { return h * group_heads / heads; }
  ATTUNE_HD constexpr mask_row row(index_t b, index_t h, index_t i) const { return {b, h, i, i + offset, queries, keys}; }

  /// The features of an input with queries or keys.
  ATTUNE_HD constexpr index_t width_of(field f) const {
    switch (f) {
      case field::q:
      case field::k:
        return width;
      case field::gate_q:
      case field::gate_k:
        return gate_width;
      case field::position_q:
      case field::position_k:
        return position_width;
      case field::center:
      case field::spread:
      case field::place:
        return axes;
      case field::output_gate:
        return output_gate_width;
      case field::v:
      case field::value_gate:
        return value_width;
      default:
        return 1;
    }
  }
  /// The heads of an input with keys.
  ATTUNE_HD constexpr index_t heads_of(field f) const {
    switch (f) {
      case field::k:
        return key_heads;
      case field::gate_k:
        return gate_key_heads;
      case field::sort_k:
        return sort_key_heads;
      case field::position_k:
        return position_key_heads;
      case field::place:
        return place_heads;
      case field::key_bias:
        return key_bias_heads;
      default:
        return value_heads;
    }
  }
};

namespace detail {

/// (batch, head, position) of a broadcast tensor that row (b, h, i) reads.
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

/// Where v0 of a row starts.
template <class View>
auto ground_value_row(View const& v0, index_t b, index_t h, index_t i) {
  row_index const at = broadcast(v0, b, h, i);
  return v0.row(at.batch, at.head, at.position);
}

/// The row that a value gate binds to: it acts for all queries alike, so what only one of them has is NaN.
template <class T>
row<T> any_query_row(problem_shape const& p, index_t b, index_t h, lift<T> const& numbers = {}) {
  T const unknown = lift<T>::constant(std::numeric_limits<double>::quiet_NaN());
  return {{b, h, 0, p.queries},
          unknown,
          unknown,
          unknown,
          lift<T>::constant(p.width > 0 ? 1 / std::sqrt(double(p.width)) : 0),
          lift<T>::constant(0),
          lift<T>::constant(double(p.keys)),
          numbers};
}

/// The scalar facts of a row of k visible keys that policies bind to.
template <class T>
ATTUNE_HD row<T> row_of_count(problem_shape const& p, index_t k, index_t b, index_t h, index_t i, lift<T> const& numbers = {}) {
  return {{b, h, i, p.queries},
          T(double(i + p.offset)),
          T(double(k)),
          k > 0 ? math::log(T(double(k))) : T(0),
          p.width > 0 ? T(T(1) / math::sqrt(T(double(p.width)))) : T(0),
          T(0),
          T(double(p.keys)),
          numbers};
}
/// The same, the keys counted.
template <class T, class Mask>
ATTUNE_HD row<T> scalar_row(problem_shape const& p, Mask const& m, index_t b, index_t h, index_t i,
                            lift<T> const& numbers = {}) {
  return row_of_count<T>(p, mask::count(m, p.row(b, h, i)), b, h, i, numbers);
}

}  // namespace detail
}  // namespace attune
