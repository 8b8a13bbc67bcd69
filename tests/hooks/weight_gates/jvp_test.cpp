// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Directional derivatives through weight gates: the CPU executor against the reference.
#include <cmath>
#include <cstdint>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../support/weight_gates.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 9, keys = 75, width = 4;

struct drawn {
  std::vector<double> value, along;
  shape extents;
  drawn(std::uint64_t seed, shape const& e) : extents(e) {
    testing::detail::normal_numbers random{seed};
    for (index_t n = 0; n < e.size(); ++n) value.push_back(random()), along.push_back(random());
  }
  tensor<double const> x() const { return {value, extents}; }
  tensor<double const> dx() const { return {along, extents}; }
  operator moving_tensor<double>() const { return {x(), dx()}; }
  operator tangent_tensor() const { return {any_tensor(x()), any_tensor(dx())}; }
};

struct problem {
  drawn q{1, {1, heads, queries, width}}, k{2, {1, heads, keys, width}}, v{3, {1, heads, keys, width}},
      sort_q{4, {1, heads, queries, 1}}, sort_k{5, {1, heads, keys, 1}};
};

template <class Op, class In, class Dense>
void compare(Op const& op, In const& in, Dense const& dense, policy_direction const& direction) {
  auto const got = jvp(cpu<double>{1}, op, in, direction);
  auto const expected = jvp(reference<double>{}, op, dense, direction);
  double worst = 0, largest = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < width; ++d) {
        dual<double, 1> const& x = expected.at(0, h).out(i, d);
        worst = std::fmax(worst, std::fabs(x.value - got.out(0, h, i, d)));
        worst = std::fmax(worst, std::fabs(x.tangent[0] - got.out_along(0, h, i, d)));
        largest = std::fmax(largest, std::fabs(x.tangent[0]));
      }
  CHECK(worst < 1e-12);
  CHECK(largest > 0.1);
}

TEST_CASE("jvp: a weight gate that reads a contraction, with a uniform share") {
  problem const p;
  using gate = basic_weight_sigmoid<contraction::scalar_difference>;
  auto const op =
      attention(kernel::dot_product{}, gate{0.8}, normalizer::affine<>{.alpha = 0.7, .average = 0.4}, mask::causal{});
  compare(op,
          inputs<std::remove_const_t<decltype(op)>, moving_tensor<double>>{
              .q = p.q, .k = p.k, .v = p.v, .sort_q = p.sort_q, .sort_k = p.sort_k},
          inputs<std::remove_const_t<decltype(op)>, tangent_tensor>{
              .q = p.q, .k = p.k, .v = p.v, .sort_q = p.sort_q, .sort_k = p.sort_k},
          {.parameters = {{"strength", 0.5}, {"alpha", -0.3}}});
}

TEST_CASE("jvp: dropout") {
  problem const p;
  auto const op = attention(kernel::dot_product{}, gate::dropout{.rate = 0.3, .seed = 7}, mask::causal{});
  compare(op, inputs<std::remove_const_t<decltype(op)>, moving_tensor<double>>{.q = p.q, .k = p.k, .v = p.v},
          inputs<std::remove_const_t<decltype(op)>, tangent_tensor>{.q = p.q, .k = p.k, .v = p.v}, {});
}

}  // namespace
}  // namespace attune::test
