// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Defects that only an operator with a gate, a margin, a ground and a ground value can have: planted, and named.
#include <string>
#include <vector>

#include <attune/reference.hpp>
#include <attune/testing/verdict.hpp>

#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::storage;
using testing::judgement;
using testing::verdict_report;

TEST_SUITE_BEGIN("verdict");

TEST_CASE("principled attention: correct kernels pass, planted defects fail and are named") {
  planted_parameters const numbers;
  auto op =
      principled_attention({.alpha = numbers.alpha, .beta = numbers.beta, .gamma = numbers.gamma}, mask::causal{});
  testing::detail::normal_numbers random(11);
  testing::drawn_problem<decltype(op)> const p({.heads = 4,
                                                .queries = 24,
                                                .keys = 40,
                                                .width = 32,
                                                .value_width = 16,
                                                .gate_width = 8,
                                                .key_heads = 2,
                                                .value_heads = 2},
                                               random);
  shape const e{1, 4, 24, 16}, rows{1, 4, 24, 1};
  auto const judge = [&](mutation const& m, storage s) {
    planted_result const got = run_planted(p, numbers, m, s, true);
    testing::candidate given = as_stored(s, got.out, e);
    given.with_lse(natural_lse(tensor<float const>(got.lse, rows)));
    return testing::verdict(op, p.inputs<any_tensor>(), given);
  };
  for (storage s : {storage::fp32, storage::bf16}) {
    for (mutation const& m : correct_variants()) {
      verdict_report const r = judge(m, s);
      INFO(printed(r));
      CHECK(r.decision == judgement::pass);
    }
    for (planted_mutation const& m : principled_mutations()) {
      verdict_report const r = judge(m.how, s);
      INFO(std::string(m.what.name) << ", " << std::string(testing::name_of(s)) << '\n' << printed(r));
      CHECK(r.decision == judgement::fail);
      if (std::string(m.what.cause) != "") CHECK(names(r, m.what.cause));
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
