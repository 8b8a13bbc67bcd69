// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The memory of one small call of any operator that reads q, k, v, sort_q, sort_k and bias: the same numbers on every
// machine.
#pragma once

#include <cmath>
#include <vector>

#include <attune/exec/reference/forward.hpp>

namespace attune::test {

struct one_call {
  index_t heads, queries, keys, width, value_width;
  std::vector<double> q = numbers(heads * queries * width, 1), k = numbers(heads * keys * width, 2),
                      v = numbers(heads * keys * value_width, 3), sort_q = numbers(heads * queries, 4),
                      sort_k = numbers(heads * keys, 5), by_out = numbers(heads * queries * value_width, 6),
                      bias = numbers(heads * queries * keys, 10);

  static std::vector<double> numbers(index_t n, double from) {
    std::vector<double> x;
    for (index_t i = 0; i < n; ++i) x.push_back(std::sin(from + 1.7 * double(i)) * 1.5);
    return x;
  }

  template <class View, class Op>
  inputs<Op, View> of(Op const&) const {
    auto const view = [this](std::vector<double> const& x, index_t length, index_t features) {
      return View(tensor<double const>(x, shape{1, heads, length, features}));
    };
    return make_inputs<Op, View>([&]<field F>() {
      if constexpr (F == field::q) return view(q, queries, width);
      if constexpr (F == field::k) return view(k, keys, width);
      if constexpr (F == field::v) return view(v, keys, value_width);
      if constexpr (F == field::sort_q) return view(sort_q, queries, 1);
      if constexpr (F == field::sort_k) return view(sort_k, keys, 1);
      if constexpr (F == field::bias) return view(bias, queries, keys);
    });
  }
  any_tensor cotangent() const { return tensor<double const>(by_out, shape{1, heads, queries, value_width}); }
};

}  // namespace attune::test
