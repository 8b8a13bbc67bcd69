// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../../check.hpp"
#include "../gradients.hpp"

namespace attune::test {
namespace {

/// Query i sees key j.
struct every_third {
  ATTUNE_HD constexpr bool operator()(mask_row const& r, index_t j) const { return (r.query + j + r.head) % 3 != 0; }
};

/// Every second query sees every key, the others none.
struct every_second {
  static constexpr auto role = policy_role::mask;
  static constexpr auto form = mask_form::interval;
  ATTUNE_HD constexpr key_interval keys(mask_row const& r) const { return {0, r.query % 2 == 0 ? r.keys : 0}; }
};

TEST_CASE("gradients of tiles: softmax, with tails, four query heads for a head of keys, and other groups") {
  auto const op = softmax_attention();
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4}) == "");
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4, .key_heads = 2, .value_heads = 4, .queries = 33}) == "");
  CHECK(gradients_of<bfloat16, 64>(op, {.batch = 2, .heads = 4, .value_heads = 2, .queries = 9, .keys = 5}) == "");
  CHECK(gradients_of<bfloat16, 64>(op, {.queries = 128, .keys = 256}) == "");
  CHECK(gradients_of<bfloat16, 64>(op, {.width = 20, .value_width = 13}) == "");  // rows are copied
  CHECK(gradients_of<bfloat16, 64>(op, {.queries = 1, .keys = 1}) == "");
}
TEST_CASE("gradients of tiles: no query or no key") {
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(), {.keys = 0}) == "");
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(), {.queries = 0}) == "");
}
TEST_CASE("gradients of tiles: causal, with rows that see no key, in both types and widths") {
  auto const op = softmax_attention(mask::causal{});
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 2, .queries = 150, .keys = 147}) == "");
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4, .queries = 80, .keys = 150, .offset = -5}) == "");
  CHECK(gradients_of<bfloat16, 128>(op, {.queries = 140, .width = 128, .value_width = 72, .offset = 9}) == "");
  CHECK(gradients_of<float16, 128>(op, {.heads = 2, .width = 104, .value_width = 128, .offset = 60}) == "");
}
TEST_CASE("gradients of tiles: a negative scale and scales of heads") {
  std::vector<float> const scales{-0.2f, 0.f, 0.3f, 0.05f};
  auto const op =
      attention(kernel::dot_product{.scale = tensor<float const>(scales.data(), {1, 4, 1, 1})}, mask::causal{});
  CHECK(gradients_of<bfloat16, 64>(op, {.heads = 4, .key_heads = 2, .value_heads = 2, .queries = 40}) == "");
}
TEST_CASE("gradients of tiles: a window, and rows without keys between rows with all keys") {
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(every_second{}), {.queries = 128}) == "");
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(mask::causal_window{20}),
                                   {.heads = 2, .queries = 300, .keys = 300}) == "");
}
TEST_CASE("gradients of tiles: masks that are no intervals") {
  std::vector<index_t> ids;
  for (index_t n = 0; n < 200; ++n) ids.push_back(n / 67);
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(mask::documents(ids)),
                                   {.heads = 2, .queries = 200, .keys = 200}) == "");
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(mask::predicate(every_third{})), {.heads = 2}) == "");
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(mask::sink_window{.sinks = 4, .width = 30}),
                                   {.heads = 2, .queries = 260, .keys = 260}) == "");
  // Forward, all groups of heads share one list of tiles.
  CHECK(gradients_of<bfloat16, 64>(softmax_attention(mask::sink_window{.sinks = 4, .width = 30}),
                                   {.batch = 2, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 140}) == "");
}
TEST_CASE("gradients of tiles: NaN in keys and values that no query sees reaches nothing") {
  auto const op = softmax_attention(mask::causal{});
  gradient_problem<std::remove_const_t<decltype(op)>, bfloat16> p(op, {.heads = 4, .key_heads = 2, .offset = 20});
  for (index_t j : {90, 91, 149}) p.spoil(field::k, j), p.spoil(field::v, j);
  auto const got = p.on_host<exec_cuda::widths<64>>();
  for (auto const& x : got) CHECK(std::none_of(x.begin(), x.end(), [](bfloat16 y) { return std::isnan(float(y)); }));
  CHECK(p.beyond_bound(got) == "");
}
TEST_CASE("gradients of tiles: NaN stays with the rows and keys that it belongs to") {
  gradient_extents const n{.heads = 2, .queries = 150, .keys = 150};
  auto const op = softmax_attention(mask::causal{});
  using problem = gradient_problem<std::remove_const_t<decltype(op)>, bfloat16>;
  for (field f : {field::q, field::k, field::v}) {
    problem p(op, n);
    p.spoil(f, 100);
    INFO(name_of(f));
    CHECK(p.beyond_bound(p.on_host<exec_cuda::widths<64>>()) == "");
  }
  problem steep(op, n);  // masses that are 0 in a row that is NaN
  for (bfloat16& x : steep.numbers(field::q)) x = bfloat16(40 * float(x));
  steep.spoil(field::k, 100);
  CHECK(steep.beyond_bound(steep.on_host<exec_cuda::widths<64>>()) == "");
  problem p(op, n);
  p.by_out()[std::size_t(64 * 20 + 3)] = problem::none();
  CHECK(p.beyond_bound(p.on_host<exec_cuda::widths<64>>()) == "");
}

TEST_CASE("gradients of tiles: gradients that they do not have are refused in words") {
  std::vector<double> const biases(33, 0.1);
  auto const op = relative_bias_attention(tensor<double const>(biases, {1, 1, 33, 1}));
  using op_type = std::remove_const_t<decltype(op)>;
  gradient_problem<op_type, bfloat16> p(op, {.queries = 3, .keys = 4});
  auto const rows = p.saved<exec_cuda::widths<64>>();
  auto const call = [&](std::span<float const> saved, auto const& change) {
    return error_of([&] {
      p.gradients([&](auto const& in, auto const& d, auto to) {
        change(to);
        testing::vjp_on_host_warps<exec_cuda::widths<64>>(op, in, saved, d, to);
      });
    });
  };
  std::vector<float> room(33);
  CHECK(call(rows, [&](auto& to) {
          to.tables.back() = tensor<float>(room.data(), {1, 1, 33, 1});
        }).find("the gradient by kernel.1.biases") != std::string::npos);
  CHECK(call(std::span<float const>(rows).first(3), [](auto&) {}).find("memory") != std::string::npos);
  CHECK(call(rows, [](auto&) {}) == "");
}

}  // namespace
}  // namespace attune::test
