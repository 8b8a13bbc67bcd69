// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Outputs, lse and every gradient against the dense reference of the same kernel.
#include <attune/sorted/sliced_relu.hpp>

#include "../support/dense_line.hpp"

namespace attune::test {
namespace {

TEST_SUITE("sorted") {
  TEST_CASE("sliced ReLU") {
    struct {
      char const* name;
      divisor divided_by;
    } const kinds[] = {{"scalar_difference/none/none/relu", divisor::one},
                       {"scalar_difference/none/none/mean_relu", divisor::count},
                       {"scalar_difference/none/none/normalized_relu", divisor::sum}};
    for (auto const& kind : kinds)
      for_each_line([&](line_problem const& p, sight const& s) {
        INFO(std::string(kind.name));
        line_results want(p);
        bool const with_lse = kind.divided_by == divisor::sum;
        if (!dense_results(kind.name, s, p, with_lse, false, want)) return;
        auto const got = sorted_results(sorted::sliced_relu{kind.divided_by, s.value}, p, with_lse, false);
        CHECK(away(got.out, want.out) < 1e-12);
        CHECK(away(got.lse, want.lse) < 1e-12);
        CHECK(away(got.q, want.q) < 1e-11);
        CHECK(away(got.k, want.k) < 1e-11);
        CHECK(away(got.v, want.v) < 1e-11);
      });
  }
}

}  // namespace
}  // namespace attune::test
