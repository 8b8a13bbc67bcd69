// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <cmath>
#include <limits>
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
TEST_CASE("gradients of tiles: fp16, with cotangents and logits of any size") {
  auto const op = softmax_attention(mask::causal{});
  for (int const binade : {-26, -14, 0, 12}) {
    gradient_problem<std::remove_const_t<decltype(op)>, float16> p(op, {.queries = 40, .keys = 90, .offset = 60});
    for (float16& x : p.numbers(field::q)) x = float16(8 * float(x));
    for (float16& x : p.by_out()) x = float16(std::ldexp(float(x), binade));
    INFO("2^", binade);
    CHECK(p.beyond_bound(p.on_host<exec_cuda::widths<128>>()) == "");
  }
}
TEST_CASE("gradients of tiles: rows with gaps, rows that tiles cannot copy, and heads that lie together") {
  auto const op = softmax_attention(mask::causal{});
  for (rows_in_memory const rows : {rows_in_memory::apart, rows_in_memory::odd, rows_in_memory::heads_together})
    CHECK(gradients_of<bfloat16, 64>(op, {.heads = 2, .queries = 30, .keys = 70, .rows = rows}) == "");
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
  steep.spoil(field::k, 149);  // the last row alone sees it
  CHECK(steep.beyond_bound(steep.on_host<exec_cuda::widths<64>>()) == "");
  problem p(op, n);
  p.by_out()[std::size_t(64 * 20 + 3)] = problem::none();
  CHECK(p.beyond_bound(p.on_host<exec_cuda::widths<64>>()) == "");
}

/// Sets feature 0 of row n of a field, or of all rows, in every head.
template <class Problem, class E = bfloat16>
void set_first(Problem& p, field f, index_t row, float x) {
  shape const e = p.extents(f);
  for (index_t n = 0; n < e.batch * e.head * e.position; ++n)
    if (row < 0 || n % e.position == row) p.numbers(f)[std::size_t(n * e.feature)] = E(x);
}
TEST_CASE("gradients of tiles: keys and queries with an infinity, whose logits are -inf") {
  float const inf = std::numeric_limits<float>::infinity();
  std::vector<index_t> const ids(150, 0);  // a list of full tiles; the last has rows to spare
  auto const check = [&](auto const& op) {
    for (field const f : {field::k, field::q})
      for (index_t const row : {20, 100}) {
        gradient_problem<std::remove_cvref_t<decltype(op)>, bfloat16> p(
            op, {.heads = 2, .queries = 150, .keys = 150, .width = 16, .value_width = 16});
        set_first(p, f == field::k ? field::q : field::k, -1, 1);
        set_first(p, f, row, -inf);
        auto const got = p.template on_host<exec_cuda::widths<64>>();
        INFO(name_of(f), " ", row);
        CHECK(p.beyond_bound(got) == "");
        index_t const width = p.extents(f).feature, rows = p.extents(f).position;
        int moved = 0;
        for (index_t n = 0; n < index_t(got[std::size_t(f)].size()); ++n)
          if (n / width % rows == row && float(got[std::size_t(f)][std::size_t(n)]) != 0) ++moved;
        CHECK(moved == 0);
      }
  };
  check(softmax_attention(mask::causal{}));
  check(softmax_attention(mask::documents(ids)));
}
TEST_CASE("gradients of tiles: a logit of +inf is NaN for its row and its keys, and nothing for other rows") {
  auto const op = softmax_attention(mask::causal{});
  using problem = gradient_problem<std::remove_const_t<decltype(op)>, bfloat16>;
  gradient_extents const n{.queries = 150, .keys = 150, .width = 16, .value_width = 16};
  problem clean(op, n), p(op, n);
  set_first(clean, field::q, -1, 1), set_first(p, field::q, -1, 1);
  set_first(p, field::k, 100, std::numeric_limits<float>::infinity());
  auto const was = clean.on_host<exec_cuda::widths<64>>(), got = p.on_host<exec_cuda::widths<64>>();
  std::size_t const first = 100 * 16;  // of the first row that sees it
  auto const number = [](auto const& all, field f, std::size_t k) { return float(all[std::size_t(f)][k]); };
  int changed = 0, not_nan = 0;
  for (std::size_t k = 0; k < 150 * 16; ++k) {
    float const x = number(got, field::q, k), before = number(was, field::q, k);
    if (k < first)
      changed += std::fabs(x - before) <= 0.02f * (std::fabs(before) + 0.2f) ? 0 : 1;
    else
      not_nan += std::isnan(x) ? 0 : 1;
    for (field const f : {field::k, field::v})  // the last row sees every key
      not_nan += std::isnan(number(got, f, k)) ? 0 : 1;
  }
  CHECK(changed == 0);
  CHECK(not_nan == 0);
}
TEST_CASE("gradients of tiles: no batch element and no head") {
  auto const op = softmax_attention(mask::causal{});
  for (gradient_extents const& n :
       {gradient_extents{.batch = 0}, gradient_extents{.heads = 0, .key_heads = 0, .value_heads = 0}}) {
    gradient_problem<std::remove_const_t<decltype(op)>, bfloat16> p(op, n);
    CHECK(p.on_host<exec_cuda::widths<64>>()[std::size_t(field::q)].empty());
  }
}

TEST_CASE("gradients of tiles: gradients that they do not have are refused in words") {
  std::vector<double> const numbers_of_tables(9 * 64, 0.1);
  auto const of = [&](index_t rows) { return tensor<double const>(numbers_of_tables.data(), {1, 1, rows, 64}); };
  auto const op = transformer_xl_attention(of(1), of(1), of(9));
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
  std::vector<bfloat16> room(3 * 64);
  CHECK(call(rows, [&](auto& to) {
          to.of(field::q) = tensor<bfloat16>(room.data(), {1, 1, 3, 64});
        }).find("the gradient by q") != std::string::npos);
  std::vector<float> numbers(9 * 64);
  CHECK(call(rows, [&](auto& to) {
          to.tables.back() = tensor<float>(numbers.data(), {1, 1, 9, 64});
        }).find("the gradient by kernel.") != std::string::npos);
  CHECK(call(std::span<float const>(rows).first(3), [](auto&) {}).find("memory") != std::string::npos);
  CHECK(call(rows, [](auto&) {}) == "");
}

}  // namespace
}  // namespace attune::test
