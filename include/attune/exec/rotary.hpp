// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_a = c x_a - s x_b,   y_b = c x_b + s x_a        the features (a, b) of a pair, turned
//
// contraction::rotary_dot one pair of query and key at a time, in scalar S. The Thrust executor computes it this way.
#pragma once

#include <attune/core/rotary_angles.hpp>
#include <attune/exec/problem_shape.hpp>

namespace attune::detail {

/// A cosine and a sine, as the executor's scalar.
template <class S>
struct turn_by {
  S cosine = S(1), sine = S(0);
  ATTUNE_HD S first(S const& a, S const& b) const { return cosine * a - sine * b; }
  ATTUNE_HD S second(S const& a, S const& b) const { return cosine * b + sine * a; }
  /// The transpose: turns a gradient back.
  ATTUNE_HD turn_by back() const { return {cosine, -sine}; }
};

/// The angles of one query and one key.
template <class S, class Owner>
struct rotary_turns {
  Owner const& owner;
  index_t b, query_row, key_row;
  ATTUNE_HD index_t pairs() const { return owner.angles.pairs(); }
  ATTUNE_HD rotary_pair pair(index_t r) const { return rotary_pair(owner.layout, pairs(), r); }
  ATTUNE_HD turn_by<S> of_query(index_t r) const {
    return {S(owner.angles.query_cosine(b, query_row, r)), S(owner.angles.query_sine(b, query_row, r))};
  }
  ATTUNE_HD turn_by<S> of_key(index_t r) const {
    if (owner.keys == rotary_keys::turned) return {};
    return {S(owner.angles.key_cosine(b, key_row, r)), S(owner.angles.key_sine(b, key_row, r))};
  }
};
template <class S, class Owner>
ATTUNE_HD rotary_turns<S, Owner> turns_of(Owner const& owner, index_t b, index_t i, index_t offset, index_t j) {
  return {owner, b, owner.angles.row_of_query(i, offset), j};
}

/// <R q, R k> for q(d) and k(d), d < width.
template <class S, class Owner, class Query, class Key>
ATTUNE_HD S rotary_product(rotary_turns<S, Owner> const& turns, index_t width, Query const& q, Key const& k) {
  S sum(0);
  for (index_t r = 0; r < turns.pairs(); ++r) {
    rotary_pair const at = turns.pair(r);
    turn_by<S> const x = turns.of_query(r), y = turns.of_key(r);
    S const qa = q(at.first), qb = q(at.second), ka = k(at.first), kb = k(at.second);
    sum = sum + x.first(qa, qb) * y.first(ka, kb);
    sum = sum + x.second(qa, qb) * y.second(ka, kb);
  }
  for (index_t d = 2 * turns.pairs(); d < width; ++d) sum = sum + q(d) * k(d);
  return sum;
}

/// Feature d of `one`, turned by `by` and then back by `to`: the derivative of the product by feature d of the other
/// side, which `to` turns.
template <class S, class Owner, class X, class By, class To>
ATTUNE_HD S turned_across(rotary_turns<S, Owner> const& turns, index_t d, X const& one, By const& by, To const& to) {
  index_t const pairs = turns.pairs();
  if (d >= 2 * pairs) return one(d);
  bool const half = turns.owner.layout == rotary_layout::half;
  index_t const r = half ? (d < pairs ? d : d - pairs) : d / 2;
  rotary_pair const at = turns.pair(r);
  turn_by<S> const forth = by(r), back = to(r).back();
  S const a = one(at.first), b = one(at.second), ya = forth.first(a, b), yb = forth.second(a, b);
  return d == at.first ? back.first(ya, yb) : back.second(ya, yb);
}

/// Throws unless there is a row of angles for every query and every key of a call. `offset`: of one batch element.
template <class Owner>
void check_angles(char const* function, Owner const& owner, problem_shape const& p, index_t offset, memory_kind where) {
  rotary_rows const& angles = owner.angles;
  index_t const queries = p.queries, keys = p.keys, width = p.width;
  if (angles.queries().absent())
    throw error(function, "the angles of kernel::rotary", "no data",
                "kernel::rotary{angles} with angles of the type rotary_angles");
  if (angles.on_host() && where == memory_kind::device)
    throw error(function, "the angles of kernel::rotary", "rotary_angles, in memory of the host",
                "rotary_rows of a copy of rotary_angles::values() that the device reads");
  bool const both = owner.keys == rotary_keys::plain;
  if (2 * angles.pairs() > width)
    throw error(function, "the angles of kernel::rotary", text(angles.pairs(), " pairs of features"),
                text("at most ", width / 2, ": q and k have ", width, " features"));
  if (both && angles.keys().extents().feature != angles.queries().extents().feature)
    throw error(function, "the angles of kernel::rotary",
                text(angles.keys().extents().feature / 2, " pairs for keys and ", angles.pairs(), " for queries"),
                "the same number of pairs");
  auto const check_batch = [&](stored_view const& x) {
    if (index_t const n = x.extents().batch; n != 1 && n != p.batch)
      throw error(function, "the angles of kernel::rotary", text("batch extent ", n), text("1 or ", p.batch));
  };
  check_batch(angles.queries());
  if (both) check_batch(angles.keys());
  index_t const rows = angles.queries().extents().position, key_rows = angles.keys().extents().position;
  if (angles.counted()) {
    if (offset < 0)
      throw error(function, "offset", text("the value ", offset),
                  "at least 0: query i reads row i + offset of the angles of kernel::rotary");
    if (rows < queries + offset)
      throw error(function, "the angles of kernel::rotary", text(rows, " rows"),
                  text("at least ", queries + offset, ": the last query is at position ", queries + offset - 1));
    if (both && rows < keys)
      throw error(function, "the angles of kernel::rotary", text(rows, " rows"),
                  text("at least ", keys, ", one for each key"));
  } else {
    if (rows != queries)
      throw error(function, "the angles of kernel::rotary", text(rows, " rows for queries"),
                  text(queries, ", one for each query"));
    if (both && key_rows != keys)
      throw error(function, "the angles of kernel::rotary", text(key_rows, " rows for keys"),
                  text(keys, ", one for each key"));
  }
}

}  // namespace attune::detail
