// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A sum of zeros over other keys leaves the bits of an operator as they are. Directional derivatives of ordered sums.
#include <algorithm>
#include <utility>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/one_call.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

using view = tensor<double const>;

double worst(std::vector<double> const& x, double const* y, double size) {
  double error = 0;
  for (std::size_t n = 0; n < x.size(); ++n)
    error = std::isnan(y[n]) ? inf : std::fmax(error, std::fabs(x[n] - y[n]) / size);
  return error;
}
double largest(std::vector<double> const& x) {
  double size = 1e-3;
  for (double y : x) size = std::fmax(size, std::fabs(y));
  return size;
}

/// A sum of zeros leaves the operator as it is: the forward pass if blocks come in the same order, the gradients if
/// theirs do. They take the keys in the opposite order.
template <class Sum>
void check_zeros(bool forward_too) {
  one_call const call{.heads = 2, .queries = 90, .keys = 200, .width = 4, .value_width = 3};
  shape const rows{1, 2, 90, 3};
  auto const run = [&](auto const& op) {
    std::vector<double> out(std::size_t(rows.size()));
    auto const saved = forward_and_save(cpu<double>{2}, op, call.of<view>(op), {.out = tensor<double>(out, rows)});
    auto const g = vjp(cpu<double>{2}, op, call.of<view>(op), saved, {.out = view(call.by_out, rows)});
    return std::pair{out, std::pair{g.of(field::q).values, g.of(field::k).values}};
  };
  auto const with = run(attention(dot_and_sum<Sum>{}, normalizer::exponential{}, mask::causal{}));
  auto const without = run(attention(kernel::dot_product{}, normalizer::exponential{}, mask::causal{}));
  CHECK((with.first == without.first) == forward_too);
  CHECK((with.second == without.second) == !forward_too);
  CHECK(worst(with.first, without.first.data(), largest(without.first)) < 1e-14);
}

TEST_CASE("ordered sums: a sum of zeros changes nothing") {
  check_zeros<contraction::earlier_sum<contraction::dot, nothing>>(true);
  check_zeros<contraction::later_sum<contraction::dot, nothing>>(false);
}

/// All inputs and parameters move, on the CPU and on the reference.
template <class Op>
void check_jvp(Op const& op, char const* moving) {
  policy_direction const direction{.parameters = {{moving, 0.3}}};
  constexpr index_t heads = 2, queries = 70, keys = 150, width = 4, value_width = 3;
  one_call const at{heads, queries, keys, width, value_width};
  one_call along = at;
  std::reverse(along.q.begin(), along.q.end());
  std::reverse(along.k.begin(), along.k.end());
  std::reverse(along.v.begin(), along.v.end());
  auto const both = [&]<class Moving, class View>() {
    auto const value = at.of<View>(op), move = along.of<View>(op);
    return make_inputs<Op, Moving>([&]<field F>() { return Moving{member<F>(value), member<F>(move)}; });
  };
  auto const got = jvp(cpu<double>{2}, op, both.template operator()<moving_tensor<double>, view>(), direction);
  auto const right = jvp(reference<double>{}, op, both.template operator()<tangent_tensor, any_tensor>(), direction);
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i)
      for (index_t d = 0; d < value_width; ++d) {
        auto const& exact = right.at(0, h).out(i, d);
        CHECK(std::fabs(got.out(0, h, i, d) - exact.value) < 1e-13);
        CHECK(std::fabs(got.out_along(0, h, i, d) - exact.tangent[0]) < 1e-11);
      }
}

TEST_CASE("ordered sums: directional derivatives") {
  check_jvp(attention(stick_breaking{0.4}, normalizer::exponential{}, mask::causal{}), "scale");
  check_jvp(
      attention(counted_distance<contraction::earlier_sum_with_own<contraction::dot, sigmoid_of>>{}, mask::causal{}),
      "rate");
}

}  // namespace
}  // namespace attune::test
