// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_n = sum F(x_m) over m on one side of n            dx_m += F'(x_m) sum dy_n over n on the other side of m
//
// The ordered sums of a row as textbooks write them. n and m number the visible keys of the row.
#pragma once

#include <attune/exec/reference/contractions/interpolated.hpp>

namespace attune::detail {

/// Calls visit(n) for the keys of a row in the order of an ordered sum.
template <class Visit>
void in_order(contraction::key_order order, std::size_t keys, Visit const& visit) {
  for (std::size_t n = 0; n < keys; ++n) visit(order == contraction::key_order::later ? keys - 1 - n : n);
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
  read_rows(contract, x, b, h, i);
}

/// Adds the gradients of what the ordered sums add and read to `dx` and to `to`. dx: the gradients by all contractions
/// of a row, whose values are x. by_parameter(direction of D, gradient) receives the gradients of parameters, whose
/// directions start at `first`.
template <class D, class T, class Op, class View, class Bound, class ByParameter>
void pull_in_order(reference_contraction<T, Op, View> const& contract, Bound const& f, row_contractions<T>& x,
                   row_contractions<T>& dx, dense_gradients<T>& to, index_t b, index_t h, index_t i, int first,
                   int directions, ByParameter const& by_parameter) {
  pull_rows(contract, x, dx, to, b, h, i);
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
