// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <attune/exec/reference/forward.hpp>
#include <attune/policies.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

/// M = 2: the vector of row n is (10^n, -10^n).
std::vector<double> const rows{1, -1, 10, -10, 100, -100, 1000, -1000, 10000, -10000};
value_term::relative const term{tensor<double const>(rows, {1, 1, 5, 2})};

TEST_CASE("relative values: the row follows j - i, clamped") {
  CHECK(term.index(0) == 2);
  CHECK(term.index(1) == 1);
  CHECK(term.index(2) == 0);
  CHECK(term.index(3) == 0);
  CHECK(term.index(1000) == 0);
  CHECK(term.index(-1) == 3);
  CHECK(term.index(-2) == 4);
  CHECK(term.index(-3) == 4);
}

/// The output of one query, with the scores 0 for all keys.
std::vector<double> output(index_t keys, index_t offset) {
  std::vector<double> const q{0}, k(std::size_t(keys), 0.0);
  std::vector<double> v;
  for (index_t j = 0; j < keys; ++j) v.push_back(double(j)), v.push_back(2);
  auto const op = attention(kernel::dot_product{}, term);
  auto const r = forward(reference<double>{}, op,
                         {.q = tensor<double const>(q, {1, 1, 1, 1}),
                          .k = tensor<double const>(k, {1, 1, keys, 1}),
                          .v = tensor<double const>(v, {1, 1, keys, 2}),
                          .offset = offset});
  return {r.at(0, 0).out(0, 0), r.at(0, 0).out(0, 1)};
}

TEST_CASE("relative values: literal rows") {
  CHECK(output(1, 0) == std::vector<double>{100, -98});
  CHECK(output(2, 1) == std::vector<double>{(0 + 10 + 1 + 100) / 2.0, 2 - 55.0});
  CHECK(output(4, 0) == std::vector<double>{(100 + 1001 + 10002 + 10003) / 4.0, 2 - 21100 / 4.0});
  CHECK(output(4, 50) == std::vector<double>{1.5 + 1, 2 - 1.0});  // all keys are far behind
  CHECK(output(0, 0) == std::vector<double>{0, 0});
}

TEST_CASE("relative values: the same at shifted positions") {
  // The distances of one query to the last keys do not change if keys with the weight 0 precede them: here a window.
  std::vector<double> const q(3, 0.0), k(3, 0.0), v{1, 2, 3, 4, 5, 6};
  auto const op = attention(kernel::dot_product{}, term, mask::causal_window{2});
  auto const r = forward(reference<double>{}, op,
                         {.q = tensor<double const>(q, {1, 1, 3, 1}),
                          .k = tensor<double const>(k, {1, 1, 3, 1}),
                          .v = tensor<double const>(v, {1, 1, 3, 2})});
  auto const& out = r.at(0, 0).out;
  for (index_t d = 0; d < 2; ++d) CHECK(out(2, d) - out(1, d) == 2);  // values rise by 2 a key
}

}  // namespace
}  // namespace attune::test
