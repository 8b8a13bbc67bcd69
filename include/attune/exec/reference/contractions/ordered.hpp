// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_n = sum F(x_m) over m on one side of n            dx_m += F'(x_m) sum dy_n over n on the other side of m
//
// The ordered sums of a row, as textbooks write them. n and m number the visible keys of the row.
#pragma once

#include <vector>

#include <attune/core/dual.hpp>
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

/// Computes the ordered sums of a row from its other contractions. f: the operator, bound to the row.
template <class Op, class T, class Bound>
void sum_in_order(Bound const& f, row_contractions<T>& x) {
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
}

/// Adds the gradients of what the ordered sums add to `dx`, which has the gradients by all contractions. moving(n, c):
/// contraction c of key n as a dual number whose direction c moves. by_parameter(direction of D, gradient) receives the
/// gradients of parameters: directions from `first` on.
template <class Op, class D, class T, class Bound, class Moving, class ByParameter>
void pull_in_order(Bound const& f, row_contractions<T>& dx, Moving const& moving, int first, int directions,
                   ByParameter const& by_parameter) {
  contraction::each_ordered<typename Op::contractions>([&](auto c, auto index, auto source) {
    using C = decltype(c);
    constexpr int at = decltype(index)::value, from = decltype(source)::value;
    T sum(0);
    in_order(contraction::opposite(C::order), dx.keys(), [&](std::size_t n) {
      T const before = sum;
      sum = sum + dx.at(n, at);
      T const by_map = C::own == contraction::own_key::included ? sum : before;
      D const map = contraction::mapped<C>(Op::template part<at>(f), moving(n, from));
      dx.at(n, from) = dx.at(n, from) + chained(by_map, map.tangent[from]);
      for (int k = first; k < directions; ++k) by_parameter(k, chained(by_map, map.tangent[k]));
    });
  });
}

}  // namespace attune::detail
