// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One small call of a fold: `terms` query heads for each of H heads of `out`, values shared by the terms of a head.
#pragma once

#include <cmath>
#include <vector>

#include <attune/operators/fold.hpp>
#include <attune/operators/presets.hpp>

namespace attune::test {

struct fold_call {
  index_t batch = 2, heads = 3, terms = 2, queries = 5, keys = 7, width = 4, value_width = 3;
  std::vector<double> q = numbers(heads * terms * queries * width, 1), k = numbers(heads * terms * keys * width, 2),
                      v = numbers(heads * keys * value_width, 3), by_out = numbers(heads * queries * value_width, 6);

  std::vector<double> numbers(index_t n, double from) const {
    std::vector<double> x;
    for (index_t i = 0; i < batch * n; ++i) x.push_back(std::sin(from + 1.7 * double(i)) * 1.5);
    return x;
  }
  shape out_shape() const { return {batch, heads, queries, value_width}; }
  tensor<double const> dq() const { return {q, shape{batch, heads * terms, queries, width}}; }
  tensor<double const> dk() const { return {k, shape{batch, heads * terms, keys, width}}; }
  tensor<double const> dv() const { return {v, shape{batch, heads, keys, value_width}}; }
  tensor<double const> cotangent() const { return {by_out, out_shape()}; }
  template <class View, class Op>
  inputs<Op, View> of(Op const&) const {
    return make_inputs<Op, View>([&]<field F>() {
      if constexpr (F == field::q) return View(dq());
      if constexpr (F == field::k) return View(dk());
      if constexpr (F == field::v) return View(dv());
    });
  }
};

}  // namespace attune::test
