// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Lists of contractions, numbers per key, tables in bind and factors of sums on the Thrust executor, against the CPU executor.
#include <thrust/execution_policy.h>

#include <attune/thrust.hpp>

#include "../support/contraction_lists.hpp"
#include "../support/every_call.hpp"
#include "../support/factor_of_sums.hpp"
#include "../support/fire.hpp"
#include "../support/per_key.hpp"

namespace attune::test {
namespace {

constexpr testing::problem_extents extents{.heads = 2, .queries = 4, .keys = 7, .width = 3, .gate_width = 2};

TEST_CASE("thrust: a kernel and a gate with lists of contractions") {
  random_tables t;
  check_other(thrust_on<double>(thrust::host),
              attention((mixed_kernel{t({1, 2, 1, 3}), t({1, 1, 4, 1})} + forgetting_dot{}) | kernel::softcap{5},
                        mixed_gate{0.5}, mask::causal{}),
              extents, 3);
}

TEST_CASE("thrust: tables with a row for each key, and a factor of the sum of the masses") {
  random_tables t;
  check_other(thrust_on<double>(thrust::host),
              attention(learned_keys{t({1, 1, 7, 3}), t({1, 2, 7, 1})}, crowded_sum{}, mask::causal{}), extents, 4);
}

TEST_CASE("thrust: tables that bind reads") {
  random_tables t;
  check_other(thrust_on<double>(thrust::host),
              attention((kernel::dot_product{} + fire{t({1, 2, 3, fire::width}), 0.75, 4.5, 0.25}) |
                            bent{t({1, 1, 1, 2}, 0.75, 0.25)},
                        mask::causal{}),
              extents, 5);
}

}  // namespace
}  // namespace attune::test
