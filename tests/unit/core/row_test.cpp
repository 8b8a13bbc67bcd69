// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <vector>

#include <attune/core/row.hpp>
#include <attune/core/simd_lift.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("row: reads a parameter at its place, or the fallback of one that was never set") {
  std::vector<double> const values{1, 2, 3, 4, 5, 6};
  row<double> const r{{0, 1, 2, 3}, 0, 0, 0, 0};  // batch 0, head 1, query 2 of 3
  CHECK(r(per_query(values, 2)) == 6);
  CHECK(r(per_query(values, 2), 9.0) == 6);
  CHECK(r(parameter{}, 9.0) == 9);
  CHECK(r(parameter(0.0), 9.0) == 0);
}

TEST_CASE("row: a parameter that is a logit loses the row constant") {
  row<double> const r{{}, 0, 0, 0, 0, 1.5};
  CHECK(r.logit(parameter(2.0)) == 0.5);
  CHECK(r.logit(0.0) == -1.5);
  CHECK(r.logit(parameter(-inf)) == -inf);
}

TEST_CASE("lift: narrows to the scalar of the row") {
  CHECK(lift<float>{}.value(0.1, {}) == 0.1f);
  CHECK(lift<double>{}.value(0.1, {}) == 0.1);
}

TEST_CASE_TEMPLATE("lift: lane l of a batch is query + l, and the last query past the end", T, float, double) {
  using batch = xsimd::batch<T>;
  index_t const lanes = index_t(batch::size), queries = lanes + 2;
  std::vector<double> values;  // head h, query i: 100 h + i
  for (int h = 0; h < 2; ++h)
    for (index_t i = 0; i < queries; ++i) values.push_back(100 * h + double(i));
  parameter const p = per_query(values, 2);
  auto const lane = [](batch const& x, index_t l) { return x.get(std::size_t(l)); };
  batch const first = lift<batch>{}.value(p, {0, 1, 0, queries}), tail = lift<batch>{}.value(p, {0, 1, lanes, queries});
  for (index_t l = 0; l < lanes; ++l) {
    CHECK(lane(first, l) == T(100 + l));
    CHECK(lane(tail, l) == T(l == 0 ? 100 + lanes : 101 + lanes));
  }
  std::vector<double> const heads{7, 8};
  batch const shared = lift<batch>{}.value(per_head(heads), {0, 1, 5, queries});
  for (index_t l = 0; l < lanes; ++l) CHECK(lane(shared, l) == T(8));
}

}  // namespace
}  // namespace attune::test
