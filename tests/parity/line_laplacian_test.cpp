// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Outputs, lse and every gradient against the dense reference of the same kernel.
#include <support/dense_line.hpp>

#include <attune/attune.hpp>
#include <attune/line.hpp>

namespace attune::test {
namespace {

TEST_SUITE("line") {
  TEST_CASE("laplacian") {
    for_each_line([](line_problem const& p, sight const& s) {
      line_results want(p);
      if (!dense_results("scalar_laplacian/none/none/softmax", s, p, true, true, want)) return;
      auto const got = results_on(cpu<double>{}, line::laplacian{per_head(p.tau), s.mask()}, p);
      CHECK(away(got.out, want.out) < 1e-12);
      CHECK(away(got.lse, want.lse) < 1e-12);
      CHECK(away(got.q, want.q) < 1e-11);
      CHECK(away(got.k, want.k) < 1e-11);
      CHECK(away(got.v, want.v) < 1e-11);
      CHECK(away(got.tau, want.tau) < 1e-9);
    });
  }
}

}  // namespace
}  // namespace attune::test
