// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Ordered sums over 16-bit tensors, and in a mixture of operators.
#include <algorithm>
#include <vector>

#include <attune/attune.hpp>

#include "../../support/one_call.hpp"
#include "../../support/stick_breaking.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

auto const op = attention(stick_breaking{0.4}, normalizer::exponential{}, mask::causal{});

TEST_CASE("ordered sums: 16-bit tensors are float's, rounded once") {
  one_call const call{.heads = 2, .queries = 150, .keys = 150, .width = 5, .value_width = 3};
  shape const rows{1, 2, 150, 5}, values{1, 2, 150, 3};
  auto const narrow = [](std::vector<double> const& x) {
    std::vector<bfloat16> to;
    for (double y : x) to.push_back(bfloat16(float(y)));
    return to;
  };
  auto const wide = [](std::vector<bfloat16> const& x) {
    std::vector<float> to;
    for (bfloat16 y : x) to.push_back(float(y));
    return to;
  };
  auto const q = narrow(call.q), k = narrow(call.k), v = narrow(call.v);
  auto const wide_q = wide(q), wide_k = wide(k), wide_v = wide(v);
  std::vector<bfloat16> out(std::size_t(values.size()));
  std::vector<float> wide_out(out.size());
  using narrow_view = tensor<bfloat16 const>;
  using wide_view = tensor<float const>;
  forward(cpu<bfloat16>{2}, op, {.q = narrow_view(q, rows), .k = narrow_view(k, rows), .v = narrow_view(v, values)},
          {.out = tensor<bfloat16>(out, values)});
  forward(cpu<float>{2}, op,
          {.q = wide_view(wide_q, rows), .k = wide_view(wide_k, rows), .v = wide_view(wide_v, values)},
          {.out = tensor<float>(wide_out, values)});
  for (std::size_t n = 0; n < out.size(); ++n) CHECK(float(out[n]) == float(bfloat16(wide_out[n])));
}

TEST_CASE("ordered sums: a mixture with softmax") {
  one_call const call{.heads = 2, .queries = 80, .keys = 80, .width = 5, .value_width = 3};
  shape const values{1, 2, 80, 3};
  std::vector<index_t> const which{1, 0};
  auto const mixed = mixture(which, op, attention(kernel::dot_product{}, mask::causal{}));
  using view = tensor<double const>;
  std::vector<double> out(std::size_t(values.size())), alone(out);
  forward(cpu<double>{2}, mixed, call.of<view>(mixed), {.out = tensor<double>(out, values)});
  forward(cpu<double>{2}, op, call.of<view>(op), {.out = tensor<double>(alone, values)});
  CHECK(std::equal(out.begin() + 80 * 3, out.end(), alone.begin() + 80 * 3));
  auto const g = vjp(cpu<double>{2}, mixed, call.of<view>(mixed), {.out = view(call.by_out, values)});
  auto const own = vjp(cpu<double>{2}, op, call.of<view>(op), {.out = view(call.by_out, values)});
  auto const& dq = g.of(field::q).values;
  CHECK(std::equal(dq.begin() + 80 * 5, dq.end(), own.of(field::q).values.begin() + 80 * 5));
}

}  // namespace
}  // namespace attune::test
