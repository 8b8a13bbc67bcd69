// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   frozen(op).op   the operator with every computed parameter replaced by its values
//
// A projected parameter costs C multiplications wherever a row is bound, a moving average all values that it averages. Fused
// executors bind a row more than once, so they compute such values once per call.
#pragma once

#include <deque>
#include <vector>

#include <attune/operators/attention.hpp>

namespace attune::detail {

/// Not copyable: the operator points into the values.
template <class Op>
class frozen {
 public:
  explicit frozen(Op const& original) : op(original) {
    for_each_parameter(op, [&](auto const& listed, auto const& policy, std::string const&) {
      using policy_type = std::remove_cvref_t<decltype(policy)>;
      parameter& p = const_cast<policy_type&>(policy).*listed.member;  // a part of our own copy
      if (!p.is_projected() && !p.is_average()) return;
      shape const e = p.extents();
      std::vector<double>& numbers = values_.emplace_back();
      numbers.reserve(std::size_t(e.size()));
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i) numbers.push_back(p.at(b, h, i));
      p = parameter(tensor<double const>(numbers, e));
    });
  }
  frozen(frozen const&) = delete;
  frozen& operator=(frozen const&) = delete;

  Op op;

 private:
  std::deque<std::vector<double>> values_;
};

}  // namespace attune::detail
