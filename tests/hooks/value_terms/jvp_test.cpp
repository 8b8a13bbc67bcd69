// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Directional derivatives through value terms: the CPU executor against the reference. The table moves, too.
#include <cmath>
#include <cstdint>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/drawn_problem.hpp>

#include "../../support/value_terms.hpp"
#include "../../support/weight_gates.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 2, queries = 40, keys = 75, width = 4, value_width = 37;

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
  drawn q{1, {1, heads, queries, width}}, k{2, {1, heads, keys, width}}, v{3, {1, heads, keys, value_width}};
  template <class View, class Op>
  inputs<Op, View> of(Op const&, bool moving = true) const {
    auto const view = [&](drawn const& x) { return moving ? View(x) : View(x.x()); };
    return {.q = view(q), .k = view(k), .v = view(v)};
  }
};

template <class Op>
void compare(Op const& op, bool inputs_move, policy_direction const& direction) {
  problem const p;
  auto const got = jvp(cpu<double>{1}, op, p.of<moving_tensor<double>>(op, inputs_move), direction);
  auto const expected = jvp(reference<double>{}, op, p.of<tangent_tensor>(op, inputs_move), direction);
  double worst = 0, largest = 0;
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < value_width; ++d) {
        dual<double, 1> const& x = expected.at(0, h).out(i, d);
        worst = std::fmax(worst, std::fabs(x.value - got.out(0, h, i, d)));
        worst = std::fmax(worst, std::fabs(x.tangent[0] - got.out_along(0, h, i, d)));
        largest = std::fmax(largest, std::fabs(x.tangent[0]));
      }
  CHECK(worst < 1e-12);
  CHECK(largest > 0.1);
}

vectors_of_term const shared({1, 1, 7, value_width}), along({1, 1, 7, value_width}, 3),
    of_heads({1, heads, 5, value_width}, 2), along_heads({1, heads, 5, value_width}, 4);

TEST_CASE("jvp: relative values, whose vectors move alone and with everything else") {
  auto const op = attention(kernel::dot_product{}, value_term::relative{shared}, mask::causal{});
  policy_direction const moves{.tables = {{"vectors", along}}};
  compare(op, false, moves);
  compare(op, true, moves);
  compare(op, true, {});
}

TEST_CASE("jvp: a value term with a uniform share, and with a weight gate") {
  policy_direction const moves{.tables = {{"value_term.vectors", along_heads}}};
  normalizer::affine<> const shares{.alpha = 0.7, .average = 0.4};
  compare(attention(kernel::dot_product{}, periodic_term{of_heads}, shares, mask::causal{}), true, moves);
  compare(attention(kernel::dot_product{}, periodic_term{of_heads}, shares, weight_decay{0.2}, mask::causal{}), true,
          moves);
}

}  // namespace
}  // namespace attune::test
