// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A predicate with bounds gives every call the bits of the predicate without them.
#include <vector>

#include <attune/attune.hpp>

#include "../../support/grid.hpp"
#include "../../unit/check.hpp"

namespace attune::test {
namespace {

constexpr index_t rows = 13, columns = 17, radius = 3;

template <class Mask>
std::vector<std::vector<float>> bits_of(grid_problem<float> const& p, Mask const& mask) {
  auto const op = attention(kernel::dot_product{}, mask);
  using op_type = std::remove_const_t<decltype(op)>;
  inputs<op_type, tensor<float const>> const in{.q = p.of(p.q), .k = p.of(p.k), .v = p.of(p.v)};
  std::vector<std::vector<float>> to(2, std::vector<float>(p.q.size()));
  forward(cpu<float>{1}, op, in, {.out = tensor<float>(to[0].data(), p.extents())});
  decode(cpu<float>{1}, op, in, {.out = tensor<float>(to[1].data(), p.extents())});
  auto const g = vjp(cpu<float>{1}, op, in, {.out = p.of(p.by_out)});
  for (field const f : {field::q, field::k, field::v}) to.emplace_back(g.of(f).values.begin(), g.of(f).values.end());
  return to;
}

TEST_CASE("bounded predicates: the same bits as without bounds, forward, decode and gradients") {
  grid_problem<float> const p(1, 2, rows * columns, 7, 1);
  auto const plain = bits_of(p, neighborhood{rows, columns, radius}),
             fast = bits_of(p, bounded_neighborhood{{rows, columns, radius}});
  REQUIRE(plain.size() == 5);
  for (std::size_t n = 0; n < 5; ++n) CHECK_MESSAGE(plain[n] == fast[n], n);  // out, decoded, and three gradients
}

}  // namespace
}  // namespace attune::test
