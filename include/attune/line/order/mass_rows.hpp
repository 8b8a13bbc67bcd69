// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row i = (m_i, sum_j e^(a_ij - m_i) v_j, sum_j e^(a_ij - m_i))
//
// The row states of many queries of softmax attention in one block of memory; row_state holds one row.
#pragma once

#include <vector>

#include <attune/line/order/rows.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

template <class W>
class mass_rows {
 public:
  mass_rows(index_t count, index_t width)
      : width_(width), reference_(std::size_t(count), initial_max<W>()), sums_(count, width + 1) {}
  index_t step() const { return sums_.step(); }
  /// The values, then the mass.
  W* operator[](index_t i) { return sums_[i]; }
  W const* operator[](index_t i) const { return sums_[i]; }
  W& reference(index_t i) { return reference_[std::size_t(i)]; }

  /// Merges a key or another state whose masses are relative to `logit`.
  void join(index_t i, W const& logit, W const* row) {
    W& m = reference_[std::size_t(i)];
    if (m < logit) {
      mix(sums_[i], normalizer::softmax::bound<W>{}.earned(m, logit), row, W(1), sums_.step());
      m = logit;
    } else {
      add(sums_[i], row, normalizer::softmax::bound<W>{}.earned(logit, m), sums_.step());
    }
  }
  /// Adds sums (values, mass) relative to e^0.
  void add_from_zero(index_t i, W const* values, W const& mass) {
    W& m = reference_[std::size_t(i)];
    if (W const zero(0); !(m == zero)) {
      W const factor = normalizer::softmax::bound<W>{}.earned(m, zero);
      for (index_t f = 0; f < sums_.step(); ++f) sums_[i][f] = sums_[i][f] * factor;
      m = zero;
    }
    for (index_t f = 0; f < width_; ++f) sums_[i][f] = sums_[i][f] + values[f];
    sums_[i][width_] = sums_[i][width_] + mass;
  }
  /// Divides the values by the mass; returns the lse.
  W finish(index_t i) {
    W* const sums = sums_[i];
    auto const done = finish_masses<normalizer::softmax>(normalizer::softmax::bound<W>{}, reference_[std::size_t(i)],
                                                         sums[width_], W(0), W(1));
    for (index_t d = 0; d < width_; ++d) sums[d] = sums[d] * done.value_factor;
    return done.lse;
  }
  rows<W>& sums() { return sums_; }

 private:
  index_t width_;
  std::vector<W> reference_;
  rows<W> sums_;
};

/// After finish(): replaces the outputs by the rows (do, -R) of da_ij = w_ij <(do_i, -R_i), (v_j, 1)>, R_i = <do_i,
/// out_i> - dlse_i. A row without mass gives no gradient.
template <class T, class W>
void make_pulls(extents const& e, index_t b, index_t h, result_cotangents<T> const& by, std::vector<W> const& lse,
                rows<W>& sums) {
  rows<W> buffer(1, e.width + 1);
  for (index_t i = 0; i < e.queries; ++i) {
    load(buffer[0], by.out, b, h, i, W(0));
    sums[i][e.width] = W(0);
    W const r = dot(buffer[0], sums[i], sums.step()) - (by.lse.absent() ? W(0) : W(by.lse(b, h, i, 0)));
    std::copy(buffer[0], buffer[0] + sums.step(), sums[i]);
    sums[i][e.width] = lse[std::size_t(i)] == -math::infinity<W>() ? W(0) : W(-r);
  }
}

}  // namespace attune::line::detail
