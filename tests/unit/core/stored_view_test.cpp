// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <attune/core/stored_view.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("stored_view: absent until it views something") {
  CHECK(stored_view{}.absent());
  CHECK(stored_view{}.extents() == shape{0, 0, 0, 0});
  double const x = 1;
  CHECK_FALSE(stored_view(tensor<double const>(&x, {1, 1, 1, 1})).absent());
}

TEST_CASE("stored_view: float and double storage read as double") {
  std::vector<double> doubles{1, 2, 3, 4};
  std::vector<float> floats{0.5f, 1.5f, 2.5f, 3.5f};
  shape const s{1, 2, 1, 2};
  CHECK(stored_view(tensor(doubles, s))(0, 1, 0, 0) == 3);
  CHECK(stored_view(tensor(floats, s))(0, 1, 0, 1) == 3.5);
  CHECK(stored_view(tensor<float const>(floats.data(), s))(0, 0, 0, 1) == 1.5);
  CHECK(stored_view(tensor(floats, s)).extents() == s);
}

TEST_CASE("stored_view: axes of extent 1 are broadcast, whatever their stride; the others use it") {
  std::vector<double> x{1, 2, 3, 4, 5, 6};
  stored_view const rows(tensor<double>(x.data() + 5, {1, 1, 3, 1}, {77, 77, -2, 77}));
  CHECK(rows(9, 9, 0, 9) == 6);
  CHECK(rows(9, 9, 2, 9) == 2);
  CHECK(rows.steps().position == -2);
  for (index_t step : {rows.steps().batch, rows.steps().head, rows.steps().feature}) CHECK(step == 0);
  stored_view const all(tensor<double>(x.data(), {1, 1, 1, 1}, {7, 7, 7, 7}));
  CHECK(all(3, 4, 5, 6) == 1);
}

}  // namespace
}  // namespace attune::test
