// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// contraction::gathered_by_pair: the reference against an independent loop, and indices that are wrong.
#include <type_traits>
#include <vector>

#include <attune/reference.hpp>

#include "../../support/grid.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

TEST_CASE("grid: the reference agrees with the loop") {
  grid_problem<double> const p(2, 2, 16, 3, 49);
  auto const op = attention(kernel::dot_product{} + grid_bias{p.table(), 4, 3}, normalizer::softmax{});
  auto const right = grid_loop(
      p, [](index_t i, index_t j) { return (i / 4 - j / 4 + 3) * 7 + (i % 4 - j % 4 + 3); },
      [](index_t, index_t) { return true; });
  auto const view = [&](std::vector<double> const& x) { return any_tensor(p.of(x)); };
  auto const dense = forward(reference<double>{}, op, {.q = view(p.q), .k = view(p.k), .v = view(p.v)});
  std::vector<double> out;
  for (auto const& head : dense.heads) out.insert(out.end(), head.out.data(), head.out.data() + head.out.size());
  auto const g =
      vjp(reference<double>{}, op, {.q = view(p.q), .k = view(p.k), .v = view(p.v)}, {.out = view(p.by_out)});
  check_grid({out, g.of(field::q).values, g.of(field::k).values, g.of(field::v).values, g.table("values").values},
             right, 1e-13);
}

TEST_CASE("grid: a visible pair without a row is named before anything is computed") {
  grid_problem<double> const p(1, 2, 16, 3, 49);
  std::vector<double> out(p.q.size(), 7);
  auto const text_of = [&](auto const& op) {
    using op_type = std::remove_cvref_t<decltype(op)>;
    inputs<op_type, any_tensor> const in{.q = p.of(p.q), .k = p.of(p.k), .v = p.of(p.v)};
    return error_of([&] { forward(reference<double>{}, op, in, {.out = tensor<double>(out.data(), p.extents())}); });
  };
  grid_bias const narrow{p.table(), 4, 2};
  CHECK(text_of(attention(kernel::dot_product{} + narrow)) ==
        "attune::forward: index(0, 11) of the policy with table kernel.1.values has the row -1; expected a row of the "
        "table, in [0, 49): key 11 is visible to query 0");
  CHECK(out == std::vector<double>(p.q.size(), 7));
  CHECK(text_of(attention(kernel::dot_product{} + grid_bias{p.table(), 4, 4}, mask::causal{}))
            .find("index(4, 0) of the policy with table kernel.1.values has the row 49") != std::string::npos);
  CHECK(text_of(attention(kernel::dot_product{} + narrow, mask::causal_window{3})) == "");
}

}  // namespace
}  // namespace attune::test
