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
  TEST_CASE("gaussian: by its series") {
    for (lie const keys : {lie::normal, lie::clustered, lie::heavy}) {
      INFO("keys ", int(keys));
      line_problem p = random_line(lie::normal, keys, 300, 400, 7);
      p.batch = p.heads = p.key_heads = 1;  // the rest of the arrays is not read
      p.q.resize(300), p.k.resize(400), p.v.resize(2000), p.by.resize(1500), p.by_lse.resize(300), p.tau.assign(1, 2.5);
      line_results want(p), got(p);
      if (!dense_results("scalar_sort/none/none/softmax", all_sights(300, 400)[0], p, true, true, want)) return;
      for (double const tolerance : {1e-3, 1e-6, 1e-12}) {
        line::gaussian const op{2.5, tolerance};
        auto const c = forward(cpu<double>{}, op, p.in<line::gaussian<>>(), p.to<line::gaussian<>>(got.out, got.lse));
        CHECK(c.expanded > 0);
        CHECK(c.discarded + c.truncated <= 1.01 * tolerance);
        CHECK(away(got.out, want.out) * largest(want.out) <= c.output() * largest(p.v));
        double worst = 0;
        for (std::size_t i = 0; i < got.lse.size(); ++i) worst = std::max(worst, std::fabs(got.lse[i] - want.lse[i]));
        CHECK(worst <= c.lse() + 1e-14);
        got = results_on(cpu<double>{}, op, p);
        // The scores do not change when all scalars move: nor do the approximate weights, within the tolerance.
        double sum = 0, size = 0;
        for (auto const* x : {&got.q, &got.k})
          for (double e : *x) sum += e, size += std::fabs(e);
        CHECK(std::fabs(sum) <= std::max(tolerance, 1e-11) * size);
        CHECK(away(got.q, want.q) < 100 * tolerance);
        CHECK(away(got.k, want.k) < 100 * tolerance);
        CHECK(away(got.v, want.v) < 10 * tolerance);
        CHECK(away(got.tau, want.tau) < 100 * tolerance);
      }
    }
  }

  TEST_CASE("gaussian: however scalars lie") {
    for_each_line([](line_problem const& p, sight const& s) {
      if (s.name != "full") return;
      line_results want(p);
      if (!dense_results("scalar_sort/none/none/softmax", s, p, true, true, want)) return;
      auto const got = results_on(cpu<double>{}, line::gaussian{per_head(p.tau), 1e-12}, p);
      CHECK(away(got.out, want.out) < 1e-11);
      CHECK(away(got.lse, want.lse) < 1e-11);
      CHECK(away(got.q, want.q) < 1e-9);
      CHECK(away(got.k, want.k) < 1e-9);
      CHECK(away(got.v, want.v) < 1e-10);
      CHECK(away(got.tau, want.tau) < 1e-8);
    });
  }
}

}  // namespace
}  // namespace attune::test
