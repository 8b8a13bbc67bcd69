// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A kernel or a gate of several contractions: every call, and the limits in which it is a sum of kernels.
#include "../../support/contraction_lists.hpp"

#include <cmath>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/every_call.hpp"

namespace attune::test {
namespace {

constexpr testing::problem_extents extents{.heads = 2, .queries = 4, .keys = 7, .width = 3, .gate_width = 2};

struct listed_dot {
  static constexpr auto role = policy_role::kernel;
  using contractions = contraction::list<contraction::dot>;
  template <class T>
  kernel::bound_multiple<T> bind(row<T> const& r) const {
    return {r.inverse_sqrt_width};
  }
};

template <class Op>
std::vector<double> output(Op const& op) {
  testing::detail::normal_numbers random(3);
  testing::drawn_problem<Op> const p({.heads = 2, .queries = 40, .keys = 70, .width = 8}, random);
  std::vector<double> out(std::size_t(2 * 40 * 8));
  forward(cpu<double>{serial{}}, op, p.template inputs<tensor<double const>>(),
          {.out = tensor<double>(out, {1, 2, 40, 8})});
  return out;
}

}  // namespace

TEST_SUITE("contraction lists") {
  TEST_CASE("a list is the sum of its kernels where the score is a sum") {
    static_assert(std::is_same_v<kernel::evaluation<forgetting_dot>::contractions, forgetting_dot::contractions>);
    auto const list = output(attention(forgetting_dot{}, mask::causal{}));
    auto const sum = output(attention(kernel::dot_product{} + kernel::scalar_difference{}, mask::causal{}));
    for (std::size_t n = 0; n < list.size(); ++n) CHECK(list[n] == doctest::Approx(sum[n]).epsilon(1e-13));
  }

  TEST_CASE("a list of one is a contraction") {
    auto const list = output(attention(listed_dot{})), plain = output(attention(kernel::dot_product{}));
    CHECK(list == plain);
  }

  TEST_CASE("every call of a list with tables, in a sum under a map, and of a gate with a list") {
    random_tables t;
    check_every_call(attention((mixed_kernel{t({1, 2, 1, 3}), t({1, 2, 4, 1})} + forgetting_dot{}) | kernel::softcap{5},
                               mixed_gate{0.5}, mask::causal{}),
                     extents, 3);
  }
}

}  // namespace attune::test
