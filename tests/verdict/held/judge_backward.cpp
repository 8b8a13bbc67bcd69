// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/testing/gradient_verdict.hpp>

#include "judge.hpp"

namespace attune::test::held {

told judge(problem const& p, backward_result const& r) {
  return with_operator(p, [&]<class Op>(Op const& op) {
    return with_inputs(p, op, [&](auto const& in) {
      std::vector<float> const dout = floats(p.dout);
      testing::gradient_candidate given;
      auto const give = [&](field f, array const& x) {
        given.with(f, tensor<double const>(x.x, x.extents()), p.stored);
      };
      give(field::q, r.dq), give(field::k, r.dk), give(field::v, r.dv);
      if (!r.dbias.x.empty()) give(field::bias, r.dbias);
      cotangents<Op, any_tensor> const d{.out = tensor<float const>(dout, p.dout.extents())};
      return told_by(testing::gradient_verdict(op, in, d, given));
    });
  });
}

}  // namespace attune::test::held
