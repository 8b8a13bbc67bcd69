// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_n = sum F(x_m) over m on one side of n            dx_m += F'(x_m) sum dy_n over n on the other side of m
//
//   z_n = sum w_c(y_n) z_c over the entries c of a row     dz_c += w_c dz_n        dy_n += sum w_c'(y_n) z_c dz_n
//
// The ordered sums of a row, and the rows of numbers that they index, as textbooks write them. n and m number the
// visible keys of the row.
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
  T& at(std::size_t n, int c) { return values[n * std::size_t(pairs) + std::size_t(c)]; }
  std::size_t keys() const { return values.size() / std::size_t(pairs); }
};

/// Calls visit(n) for the keys of a row in the order of an ordered sum.
template <class Visit>
void in_order(contraction::key_order order, std::size_t keys, Visit const& visit) {
  for (std::size_t n = 0; n < keys; ++n) visit(order == contraction::key_order::later ? keys - 1 - n : n);
}

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

/// Computes the ordered sums of a row from its other contractions, and what they read. f: the operator, bound to the
/// row.
template <class T, class Op, class View, class Bound>
void sum_in_order(reference_contraction<T, Op, View> const& contract, Bound const& f, row_contractions<T>& x, index_t b,
                  index_t h, index_t i) {
  contraction::each_ordered<typename Op::contractions>([&](auto c, auto index, auto source) {
    using C = decltype(c);
    T sum(0);
    in_order(C::order, x.keys(), [&](std::size_t n) {
      T const before = sum;
      sum =
          sum + contraction::mapped<C>(Op::template part<decltype(index)::value>(f), x.at(n, decltype(source)::value));
      x.at(n, decltype(index)::value) = C::own == contraction::own_key::included ? sum : before;
    });
  });
  if constexpr (has_interpolated_rows<Op>) read_rows(contract, x, b, h, i);
}

/// Adds the gradients of what the ordered sums add to `dx`, which has the gradients by all contractions, whose values
/// are x. by_parameter(direction of D, gradient) receives the gradients of parameters: directions from `first` on.
template <class Op, class D, class T, class Bound, class ByParameter>
void pull_in_order(Bound const& f, row_contractions<T>& x, row_contractions<T>& dx, int first, int directions,
                   ByParameter const& by_parameter) {
  contraction::each_ordered<typename Op::contractions>([&](auto c, auto index, auto source) {
    using C = decltype(c);
    constexpr int at = decltype(index)::value, from = decltype(source)::value;
    T sum(0);
    in_order(contraction::opposite(C::order), dx.keys(), [&](std::size_t n) {
      T const before = sum;
      sum = sum + dx.at(n, at);
      T const by_map = C::own == contraction::own_key::included ? sum : before;
      D const map = contraction::mapped<C>(Op::template part<at>(f), D::variable(x.at(n, from), from));
      dx.at(n, from) = dx.at(n, from) + chained(by_map, map.tangent[from]);
      for (int k = first; k < directions; ++k) by_parameter(k, chained(by_map, map.tangent[k]));
    });
  });
}

}  // namespace attune::detail
