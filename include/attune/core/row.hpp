// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   bound = policy.bind(row<T>)
//
// What a policy may know of a query row before it sees a key, and of a key beside its contractions. T is the executor's
// scalar: on the CPU a batch whose lanes are consecutive queries, so binding is branch-free and scalar-generic like
// everything pointwise.
#pragma once

#include <attune/core/math.hpp>
#include <attune/core/parameter.hpp>
#include <attune/core/table.hpp>

namespace attune {

/// Where the lanes of a row are: lane l is query min(query + l, queries - 1) of (batch, head).
struct row_place {
  index_t batch = 0, head = 0, query = 0, queries = 1;
};

/// Reads the numbers of a policy for all lanes of a row. Specialised beside each scalar kind that has several lanes,
/// and for dual numbers, where it also knows which of them move.
template <class T>
struct lift {
  ATTUNE_HD T value(parameter const& p, row_place const& at) const {
    return p.template value<T>(at.batch, at.head, at.query);
  }
  ATTUNE_HD T entry(table const& x, index_t b, index_t h, index_t i, index_t d) const { return T(x(b, h, i, d)); }
  ATTUNE_HD static T constant(double x) { return T(x); }
};

/// One query row (or the rows in the lanes of a batch).
template <class T>
struct row {
  row_place place;
  T position;            ///< of the query among the keys: i + offset
  T visible;             ///< K, the number of visible keys
  T log_visible;         ///< log K, and 0 where K = 0
  T inverse_sqrt_width;  ///< 1 / sqrt(D) of the score's dot product, rounded once
  T logit_shift = T(0);  ///< row constant c that the length scale took out of every logit: a = a' + c
  T keys = T(0);         ///< Lk, the number of keys, visible or not
  lift<T> numbers = {};

  /// The value of a parameter in this row.
  ATTUNE_HD T operator()(parameter const& p) const { return numbers.value(p, place); }
  /// The same, or `fallback` where the parameter was never set.
  ATTUNE_HD T operator()(parameter const& p, T const& fallback) const { return p.is_set() ? (*this)(p) : fallback; }
  /// A parameter that is a logit (a sink, a ground level) in the units in which this row's logits arrive: p - c.
  ATTUNE_HD T logit(parameter const& p) const { return (*this)(p)-logit_shift; }
  /// The same for a constant.
  ATTUNE_HD T logit(double constant) const { return lift<T>::constant(constant) - logit_shift; }
};

/// One key, as pointwise code sees it.
template <class T>
struct key {
  T position;  ///< j, exact in T up to 2^24 for float
};

}  // namespace attune
