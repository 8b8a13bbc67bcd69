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
  TEST_CASE("sliced ReLU") {
    auto const check = [](char const* name, auto const& normalizer) {
      for_each_line([&](line_problem const& p, sight const& s) {
        INFO(std::string(name));
        line::sliced_relu const op{normalizer, s.mask()};
        line_results want(p);
        if (!dense_results(name, s, p, op.has_lse, false, want)) return;
        auto const got = results_on(cpu<double>{}, op, p);
        CHECK(away(got.out, want.out) < 1e-12);
        CHECK(away(got.lse, want.lse) < 1e-12);
        CHECK(away(got.q, want.q) < 1e-11);
        CHECK(away(got.k, want.k) < 1e-11);
        CHECK(away(got.v, want.v) < 1e-11);
      });
    };
    check("scalar_difference/none/none/relu", normalizer::relu{});
    check("scalar_difference/none/none/mean_relu", normalizer::mean_relu{});
    check("scalar_difference/none/none/normalized_relu", normalizer::normalized_relu{});
  }
}

}  // namespace
}  // namespace attune::test
