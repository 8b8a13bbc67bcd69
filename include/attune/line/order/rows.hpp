// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y = a y + b x      <x, y>      rows whose length is a multiple of 8
//
// A matrix of rows for sums over keys, and loops on them. The length is rounded up and the loops run in blocks of 8, so
// that compilers know a trip count and vectorize at -O2.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/config.hpp>
#include <attune/core/math.hpp>
#include <attune/core/tensor.hpp>
#include <attune/line/call/problem.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::line::detail {

inline constexpr index_t block = 8;

/// Blocks of keys below this size are not worth a scan: their pairs are computed one by one.
inline constexpr index_t shortest_block = 32;

constexpr index_t padded(index_t n) { return (n + block - 1) / block * block; }

/// y = a y + b x
template <class W>
inline void mix(W* ATTUNE_RESTRICT y, W const& a, W const* ATTUNE_RESTRICT x, W const& b, index_t n) {
  for (index_t d = 0; d < n; d += block)
    for (index_t e = 0; e < block; ++e) y[d + e] = y[d + e] * a + x[d + e] * b;
}
/// y = y + b x
template <class W>
inline void add(W* ATTUNE_RESTRICT y, W const* ATTUNE_RESTRICT x, W const& b, index_t n) {
  for (index_t d = 0; d < n; d += block)
    for (index_t e = 0; e < block; ++e) y[d + e] = y[d + e] + x[d + e] * b;
}
template <class W>
inline W dot(W const* x, W const* y, index_t n) {
  W part[block];
  for (index_t e = 0; e < block; ++e) part[e] = W(0);
  for (index_t d = 0; d < n; d += block)
    for (index_t e = 0; e < block; ++e) part[e] = part[e] + x[d + e] * y[d + e];
  W sum(0);
  for (index_t e = 0; e < block; ++e) sum = sum + part[e];
  return sum;
}

/// Rows of `width` numbers, padded with zeros to a multiple of 8.
template <class W>
class rows {
 public:
  rows() = default;
  rows(index_t count, index_t width) : step_(padded(width)), data_(std::size_t(count * step_), W(0)) {}
  index_t step() const { return step_; }
  W* operator[](index_t i) { return data_.data() + i * step_; }
  W const* operator[](index_t i) const { return data_.data() + i * step_; }
  void clear() { std::fill(data_.begin(), data_.end(), W(0)); }

 private:
  index_t step_ = 0;
  std::vector<W> data_;
};

/// Loads the features of one position, and appends one number.
template <class W, class T>
inline void load(W* ATTUNE_RESTRICT to, tensor<T> const& from, index_t b, index_t h, index_t i, W const& last) {
  index_t const width = from.extents().feature, step = from.steps().feature,
                whole = step == 1 ? width / block * block : 0;
  T const* ATTUNE_RESTRICT const x = from.row(b, h, i);
  for (index_t d = 0; d < whole; d += block)
    for (index_t e = 0; e < block; ++e) to[d + e] = W(x[d + e]);
  for (index_t d = whole; d < width; ++d) to[d] = W(x[d * step]);
  to[width] = last;
}
/// Stores the features of a row times a factor in a tensor.
template <class T, class W>
inline void store(tensor<T> const& to, index_t b, index_t h, index_t i, W const* ATTUNE_RESTRICT from,
                  W const& factor = W(1)) {
  index_t const width = to.extents().feature, step = to.steps().feature, whole = step == 1 ? width / block * block : 0;
  T* ATTUNE_RESTRICT const x = to.row(b, h, i);
  for (index_t d = 0; d < whole; d += block)
    for (index_t e = 0; e < block; ++e) x[d + e] = T(from[d + e] * factor);
  for (index_t d = whole; d < width; ++d) x[d * step] = T(from[d] * factor);
}

/// Stores a row of sums after its normalizer finished it.
template <class T, class W>
void store_row(results<T> const& to, index_t b, index_t h, index_t i, W const* row, finished_row<W> const& done) {
  store(to.out, b, h, i, row, done.value_factor);
  if (!to.lse.absent()) to.lse(b, h, i, 0) = T(done.lse);
}
/// Stores the outputs of a head, a row and an lse per query: finish(i) turns row i of the sums into an output and
/// returns its lse.
template <class T, class Rows, class Finish>
void store_head(results<T> const& to, index_t b, index_t h, index_t queries, Rows& sums, Finish const& finish) {
  for (index_t i = 0; i < queries; ++i) {
    auto const lse = finish(i);
    store(to.out, b, h, i, sums[i]);
    if (!to.lse.absent()) to.lse(b, h, i, 0) = T(lse);
  }
}

/// The values of a head as rows (v, 1): one at a time, or with a small cache for neighbors that are read repeatedly.
template <class T, class W>
class value_rows {
 public:
  value_rows(arrays<T> const& in, extents const& e, index_t b, index_t h)
      : v_(in.v), b_(b), h_(e.value_head(h)), one_(1, e.width + 1), kept_(shortest_block, e.width + 1),
        key_(std::size_t(shortest_block), -1) {}
  /// The row of key j. Valid until the next call.
  W const* operator()(index_t j) {
    load(one_[0], v_, b_, h_, j, W(1));
    return one_[0];
  }
  /// The cached row of key j. Valid until a call for a key that is a multiple of shortest_block away.
  W const* kept(index_t j) {
    index_t const at = j % shortest_block;
    if (key_[std::size_t(at)] != j) {
      key_[std::size_t(at)] = j;
      load(kept_[at], v_, b_, h_, j, W(1));
    }
    return kept_[at];
  }

 private:
  tensor<T const> v_;
  index_t b_, h_;
  rows<W> one_, kept_;
  std::vector<index_t> key_;
};

/// Writes the gradients of head h by its queries; accumulates those by keys and values, which heads may share. `factor`
/// applies to dq and dk.
template <class T, class W>
void add_to_gradients(extents const& e, index_t b, index_t h, std::vector<W> const& dq, std::vector<W> const& dk,
                      rows<W> const& dv, W const& factor, gradient_views<T> const& d) {
  index_t const g = e.key_head(h), vh = e.value_head(h);
  if (!d.sort_q.absent())
    for (index_t i = 0; i < e.queries; ++i) d.sort_q(b, h, i, 0) = T(dq[std::size_t(i)] * factor);
  if (!d.sort_k.absent())
    for (index_t j = 0; j < e.keys; ++j)
      d.sort_k(b, g, j, 0) = T(W(d.sort_k(b, g, j, 0)) + dk[std::size_t(j)] * factor);
  if (!d.v.absent())
    for (index_t j = 0; j < e.keys; ++j)
      for (index_t f = 0; f < e.width; ++f) d.v(b, vh, j, f) = T(W(d.v(b, vh, j, f)) + dv[j][f]);
}

}  // namespace attune::line::detail
