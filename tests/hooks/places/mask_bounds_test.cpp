// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// check_forward finds a predicate that shows keys outside its bounds.
#include <sstream>
#include <string>

#include <attune/attune.hpp>
#include <attune/testing/forward_check.hpp>

#include "../../support/grid.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

/// Every key up to the query, of which the first `hidden` are outside the bounds.
struct promised {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::predicate;
  static constexpr bool bounds_keys = true;
  index_t hidden = 0, late = 0;
  bool visible(mask_row const& r, index_t j) const { return j <= r.position; }
  key_interval may_see(mask_row const& r, index_t from) const {
    if (from >= late && late > 0) return {0, late};
    return {hidden, r.position + 1};
  }
};

TEST_CASE("mask bounds: check_forward names the first key outside") {
  testing::problem_extents const e{.heads = 2, .queries = 3, .keys = 8, .width = 2};
  auto const report = [&](promised const& m) {
    return testing::check_forward(attention(kernel::dot_product{}, mask::causal{} & m), e, 1);
  };
  auto const right = report({});
  CHECK(right.passed());
  CHECK(right.line("mask", "may_see").passed());
  auto const wrong = report({2});
  CHECK_FALSE(wrong.passed());
  CHECK(wrong.line("mask", "may_see").where ==
        "key 0 of row (0, 0, 0), which is visible outside the intervals of may_see");
  CHECK(report({0, 3}).line("mask", "may_see").where ==
        "key 3 of row (0, 0, 0), which is visible outside the intervals of may_see");
}

}  // namespace
}  // namespace attune::test
