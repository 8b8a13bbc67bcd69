// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   moved_call<Op> const moved(inputs, cotangents, random);     moved.in, moved.d
//
// A call near a given one: every number is multiplied by a random factor in [0.999, 1.001], and is a float. Zeros,
// infinities and NaNs stay. So rounding differs, and all else is alike.
#pragma once

#include <array>
#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/exec/reference/any_tensor.hpp>
#include <attune/testing/drawn_problem.hpp>

namespace attune::testing::detail {

template <class Op>
class moved_call {
 public:
  inputs<Op, any_tensor> in;
  cotangents<Op, any_tensor> d;

  moved_call(inputs<Op, any_tensor> const& of, cotangents<Op, any_tensor> const& by, normal_numbers& random)
      : in(of), d(by) {
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F)) move(member<F>(in), fields_[std::size_t(F)], random);
    });
    move(d.out, out_, random);
    if constexpr (Op::has_lse) move(d.lse, lse_, random);
    if constexpr (Op::has_ground_weight) move(d.ground_weight, ground_weight_, random);
  }
  moved_call(moved_call const&) = delete;  // views point into this object
  moved_call& operator=(moved_call const&) = delete;

 private:
  static void move(any_tensor& x, std::vector<float>& to, normal_numbers& random) {
    if (x.absent()) return;
    shape const& e = x.extents();
    to.reserve(std::size_t(e.size()));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t c = 0; c < e.feature; ++c)
            to.push_back(float(x(b, h, i, c) * (1 + 0.002 * (random.uniform() - 0.5))));
    x = tensor<float const>(to, e);
  }

  std::array<std::vector<float>, field_count> fields_;
  std::vector<float> out_, lse_, ground_weight_;
};

}  // namespace attune::testing::detail
