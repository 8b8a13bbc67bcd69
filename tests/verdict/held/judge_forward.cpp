// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <attune/testing/verdict.hpp>

#include "judge.hpp"

namespace attune::test::held {

told judge(problem const& p, forward_result const& r, int page) {
  return with_operator(p, [&](auto const& op) {
    return with_inputs(p, op, [&](auto const& in) {
      std::vector<float> const lse = floats(r.lse);
      testing::candidate given(tensor<double const>(r.out.x, r.out.extents()), p.stored);
      given.with_lse(natural_lse(tensor<float const>(lse, r.lse.extents())));
      testing::verdict_options how;
      how.page = page;
      return told_by(testing::verdict(op, in, given, how));
    });
  });
}

}  // namespace attune::test::held
