// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   z_n = sum w_c(y_n) z_c over the entries c of a row     dz_c += w_c dz_n        dy_n += sum w_c'(y_n) z_c dz_n
//
// Rows of numbers that ordered sums index, as textbooks write them. n numbers the visible keys of a row.
#pragma once

#include <vector>

#include <attune/core/dual.hpp>
#include <attune/exec/reference/contractions/contraction.hpp>
#include <attune/operators/attention.hpp>

namespace attune::detail {

/// The values of the contractions of a row: `pairs` numbers for each visible key.
template <class T>
struct row_contractions {
  int pairs;
  std::vector<T> values;
  T* add_key() {
    values.resize(values.size() + std::size_t(pairs));
    return values.data() + values.size() - std::size_t(pairs);
  }
  /// The values of key number n.
  T const* of(std::size_t n) const { return values.data() + n * std::size_t(pairs); }
  T& at(std::size_t n, int c) { return values[n * std::size_t(pairs) + std::size_t(c)]; }
  std::size_t keys() const { return values.size() / std::size_t(pairs); }
};

/// The weight of entry c among the `count` entries of a row that is read at the index y: 1 at c, 0 at c - 1 and c + 1,
/// and lines in between. It is a difference of two ramps, each from 0 to 1. So no integer part is taken, and
/// the derivative at an integer is the one on the right.
template <class T>
T entry_weight(T const& y, index_t c, index_t count) {
  T const one(1), from_0 = math::larger(y, T(0));
  auto const ramp = [&](index_t at) {  // from 0 at at - 1 to 1 at `at`
    T const x = from_0 - T(double(at)) + one;
    return math::select(x >= one, one, math::larger(x, T(0)));
  };
  return c + 1 == count ? ramp(c) : T(ramp(c) - ramp(c + 1));
}
/// Calls visit(c, w, z) for the entries of the row of query i that the index y reads.
template <class W, class T, class Op, class View, class Visit>
void for_each_entry(reference_contraction<T, Op, View> const& contract, W const& y, index_t b, index_t h, index_t i,
                    Visit const& visit) {
  for (index_t c = 0; c < contract.p.positions; ++c) {
    W const w = entry_weight(y, c, contract.p.positions);
    if (scalar<W>::all(scalar<W>::vanishes(w))) continue;
    T const z = read_shared<T>(contract.in.position_scores, b, h, i, c);
    if constexpr (std::is_same_v<W, T>)  // an infinite entry next to y adds nothing to the value
      if (!scalar<T>::all(T(z - z) == T(0)) && scalar<T>::all(w == T(0))) continue;
    visit(c, w, z);
  }
}
/// Computes the numbers that the ordered sums of a row read in its row of numbers.
template <class T, class Op, class View>
void read_rows(reference_contraction<T, Op, View> const& contract, row_contractions<T>& x, index_t b, index_t h,
               index_t i) {
  contraction::each_interpolated<typename Op::contractions>([&](auto, auto index, auto source) {
    for (std::size_t n = 0; n < x.keys(); ++n) {
      T sum(0);
      for_each_entry(contract, x.at(n, decltype(source)::value), b, h, i,
                     [&](index_t, T const& w, T const& z) { sum = sum + w * z; });
      x.at(n, decltype(index)::value) = sum;
    }
  });
}
/// Adds the gradients of these numbers to the gradients of the row and of the sums. dx: the gradients by all
/// contractions of a row, whose values are x.
template <class T, class Op, class View>
void pull_rows(reference_contraction<T, Op, View> const& contract, row_contractions<T>& x, row_contractions<T>& dx,
               dense_gradients<T>& to, index_t b, index_t h, index_t i) {
  using D = dual<T, 1>;
  contraction::each_interpolated<typename Op::contractions>([&](auto c, auto index, auto source) {
    constexpr int from = decltype(source)::value;
    for (std::size_t n = 0; n < dx.keys(); ++n) {
      T const by = dx.at(n, decltype(index)::value);
      if (scalar<T>::all(scalar<T>::vanishes(by))) continue;
      T slope(0);
      for_each_entry(contract, D::variable(x.at(n, from), 0), b, h, i, [&](index_t e, D const& w, T const& z) {
        to.add(decltype(c)::of, b, h, i, e, T(by * w.value));
        slope = slope + w.tangent[0] * z;
      });
      dx.at(n, from) = dx.at(n, from) + by * slope;
    }
  });
}

}  // namespace attune::detail
