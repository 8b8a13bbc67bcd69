// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients by parameters through the members of bound policies are those that duals of the parameters give.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <attune/operators/listing.hpp>
#include <attune/operators/logit_members.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

/// A row in the middle of a batch, with numbers that no formula prefers.
row<double> some_row() { return {{0, 0, 0, 1}, 6.5, 5, std::log(5.0), 0.35, 0, 7}; }

/// Compares both ways of one row of 40 keys.
template <class Op>
void same_as_duals(char const* name, Op op) {
  CAPTURE(name);
  static_assert(has_logit_members<Op>);
  constexpr int pairs = kernel::evaluation<typename Op::kernel_policy>::contractions::size +
                        gate::evaluation<typename Op::gate_policy>::contractions::size,
                members = logit_member_count<Op>, parameters = parameter_count<Op>;
  detail::number(op);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  row<double> const r = some_row();
  using M = dual<double, pairs + members + 1>;
  using P = dual<double, parameters + 1>;
  auto const seeded = lifted(r, lift<P>{{}, {.first_number = 0, .count = parameters, .first = 0}});
  auto const by_members = along_logit_members<M>(op, r, pairs);
  auto const by_duals = op.bind(seeded);
  std::array<double, std::size_t(members) + 1> sums{};
  std::array<double, std::size_t(parameters) + 1> expected{}, got{}, size{};
  for (int j = 0; j < 40; ++j) {
    double const da = normal(random);
    std::array<M, std::size_t(pairs) + 1> x;
    std::array<P, std::size_t(pairs) + 1> y;
    for (int n = 0; n < pairs; ++n) {
      double const score = 2 * normal(random);
      x[std::size_t(n)] = M::variable(score, n);
      y[std::size_t(n)] = P(score);
    }
    M const a = by_members.logit(x.data(), {M(double(j % 7))});
    P const b = by_duals.logit(y.data(), {P(double(j % 7))});
    CHECK(a.value == b.value);
    for (int m = 0; m < members; ++m) sums[std::size_t(m)] += detail::chained(da, a.tangent[pairs + m]);
    for (int n = 0; n < parameters; ++n) {
      double const part = detail::chained(da, b.tangent[n]);
      expected[std::size_t(n)] += part;
      size[std::size_t(n)] += std::fabs(part);
    }
  }
  add_logit_parameters<double, parameters + 1>(op, seeded, sums.data(), got.data());
  for (std::size_t n = 0; n < std::size_t(parameters); ++n) {
    CAPTURE(n);
    CHECK(std::fabs(got[n] - expected[n]) <= 1e-13 * size[n]);
  }
}

/// A kernel that keeps a whole number.
struct counts {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::dot;
  static constexpr auto parameters() { return std::tuple<>{}; }
  template <class T>
  struct bound {
    T c;
    int times;
    ATTUNE_HD T score(T const& x, key<T> const&) const { return c * x * T(double(times)); }
  };
  template <class T>
  ATTUNE_HD bound<T> bind(row<T> const& r) const {
    return {r.visible, 2};
  }
};

TEST_SUITE_BEGIN("logit members");

TEST_CASE("presets") {
  same_as_duals("softmax", softmax_attention(mask::causal{}));
  same_as_duals("softcap", attention(kernel::dot_product{.scale = 0.3} | kernel::softcap{1.5}));
  same_as_duals("alibi", attention(kernel::dot_product{} + kernel::alibi{0.25}));
  same_as_duals("alibi, capped",
                attention((kernel::dot_product{.scale = 0.3} + kernel::alibi{0.25}) | kernel::softcap{1.5}));
  same_as_duals("principled", principled_attention({.alpha = 0.2, .beta = 0.6, .gamma = 0.4}));
  same_as_duals("two-sided", two_sided_attention(0.6));
  same_as_duals("scaled rbf", scaled_rbf_attention(0.5));
  same_as_duals("tempered", attention(kernel::tempered_dot{0.7}));
  same_as_duals("rbf", attention(kernel::rbf{}));
  same_as_duals("ssmax", attention(kernel::dot_product{.scale = 0.4}, length_scale::ssmax{}));
  same_as_duals("log n", attention(kernel::dot_product{.scale = 0.4}, length_scale::log_n{}));
  same_as_duals("yarn", attention(kernel::dot_product{.scale = 0.4}, length_scale::yarn{}));
  same_as_duals("margin", attention(kernel::dot_product{.scale = 0.4}, length_scale::margin{}));
}

TEST_CASE("what is not scalars alone has no members") {
  static_assert(!has_members<counts> && !has_logit_members<decltype(attention(counts{}))>);
  static_assert(!has_members<kernel::sum<counts, kernel::alibi>>);
  static_assert(has_members<kernel::dot_product> && member_count<kernel::dot_product> == 1);
  static_assert(member_count<kernel::sum<kernel::dot_product, kernel::alibi>> == 1 + member_count<kernel::alibi>);
  CHECK(detail::members<counts>::count == -1);
}

TEST_CASE("a member that does not move contributes 0, also where its gradient is infinite") {
  kernel::dot_product const k{.scale = 0.5};
  auto const still = k.bind(lifted(some_row(), lift<dual<double, 1>>{}));
  double const sums[] = {math::infinity<double>()};
  double gradient[] = {0};
  add_by_parameters<kernel::dot_product, double, 1, chain_rule::guarded>(k, still, sums, gradient);
  CHECK(gradient[0] == 0);
}

}  // namespace
}  // namespace attune::test
