// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound = policy.bind(row<T>)
//
// The facts that a policy may use about a query row before it sees a key, and about a key besides its contractions. T
// is the executor's scalar. On the CPU it is a batch whose lanes are consecutive queries, so binding is branch-free and
// scalar-generic, like all pointwise code.
#pragma once

#include <attune/core/math.hpp>
#include <attune/core/parameter.hpp>
#include <attune/core/table.hpp>

namespace attune {

/// The position of a row's lanes: lane l is query min(query + l, queries - 1) of (batch, head).
struct row_place {
  index_t batch = 0,  ///< batch element
      head = 0,       ///< query head
      query = 0,      ///< query of lane 0
      queries = 1;    ///< Lq
};

/// One row of a table, for a row's batch element and head: w[n] is the number in column n. Specialized for SIMD batches
/// and dual numbers.
template <class T>
class table_entries {
 public:
  /// Row i of the table x, for the batch element and the head of `at`; not checked.
  ATTUNE_HD table_entries(table const& x, row_place const& at, index_t i)
      : doubles_(x.view().doubles()), floats_(x.view().floats()), step_(x.view().steps().feature) {
    strides const s = x.view().steps();
    index_t const first = at.batch * s.batch + at.head * s.head + i * s.position;
    if (doubles_ != nullptr)
      doubles_ += first;
    else
      floats_ += first;
  }
  /// The number in column n, not checked.
  ATTUNE_HD T operator[](index_t n) const {
    return doubles_ != nullptr ? T(doubles_[n * step_]) : T(double(floats_[n * step_]));
  }

 private:
  double const* doubles_;
  float const* floats_;
  index_t step_;
};

/// Reads the numbers of a policy for all lanes of a row. Specialized for each kind of scalar with several lanes, and
/// for dual numbers, where it also knows which numbers have tangents.
template <class T>
struct lift {
  /// The value of a parameter in each lane of the row.
  ATTUNE_HD T value(parameter const& p, row_place const& at) const {
    return p.template value<T>(at.batch, at.head, at.query);
  }
  /// The entry (b, h, i, d) of a table.
  ATTUNE_HD T entry(table const& x, index_t b, index_t h, index_t i, index_t d) const { return T(x(b, h, i, d)); }
  /// Row i of a table.
  ATTUNE_HD table_entries<T> entries(table const& x, row_place const& at, index_t i) const { return {x, at, i}; }
  /// The number x, rounded to T. Its derivatives are 0.
  ATTUNE_HD static T constant(double x) { return T(x); }
};

/// One query row (or the rows in the lanes of a batch).
template <class T>
struct row {
  row_place place;       ///< where the row is
  T position;            ///< position of the query among the keys: i + offset
  T visible;             ///< K, the number of visible keys
  T log_visible;         ///< log K; 0 where K = 0
  T inverse_sqrt_width;  ///< 1 / sqrt(D) of the score's dot product, rounded once
  T logit_shift = T(0);  ///< row constant c that the length scale subtracted from every logit: a = a' + c
  T keys = T(0);         ///< Lk, the number of keys, visible or not
  lift<T> numbers = {};  ///< reads parameters and tables; gives dual numbers their tangents

  /// The value of a parameter in this row.
  ATTUNE_HD T operator()(parameter const& p) const { return numbers.value(p, place); }
  /// The value of a parameter in this row, or `fallback` if the parameter was never set.
  ATTUNE_HD T operator()(parameter const& p, T const& fallback) const { return p.is_set() ? (*this)(p) : fallback; }
  /// Row i of a table that the policy lists with table_use::bind: w[n] is the number in column n. Keep it in the bound
  /// object and read it in pointwise code. Indices are not checked; check() of the policy may check the extents.
  ATTUNE_HD table_entries<T> entries(table const& x, index_t i = 0) const { return numbers.entries(x, place, i); }
  /// A parameter that is a logit (a sink, a ground level), relative to the row constant like this row's logits: p - c.
  ATTUNE_HD T logit(parameter const& p) const { return (*this)(p)-logit_shift; }
  /// The same, for a constant.
  ATTUNE_HD T logit(double constant) const { return lift<T>::constant(constant) - logit_shift; }
};

/// One key, as pointwise code sees it.
template <class T>
struct key {
  T position;  ///< j, exact in T up to 2^24 for float
};

}  // namespace attune
