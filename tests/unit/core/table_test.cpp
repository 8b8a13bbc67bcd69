// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <string>
#include <vector>

#include <attune/core/table.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("table: rows and columns of a view, shared by the heads it has no own numbers for") {
  CHECK_FALSE(table{}.is_set());
  std::vector<float> const x{1, 2, 3, 4, 5, 6};
  table const t = tensor<float const>(x, shape{1, 1, 3, 2});
  CHECK(t.is_set());
  CHECK(t.rows() == 3);
  CHECK(t.columns() == 2);
  CHECK(t(7, 8, 2, 1) == 6);
  table const per_head = tensor<float const>(x, shape{1, 2, 3, 1});
  CHECK(per_head(7, 1, 0, 0) == 4);
}

std::string checked(table const& t, table_width width) {
  return error_of([&] { detail::check_table("forward", "metric", t, width, 2, 3, 4); });  // batch 2, heads 3, D = 4
}

TEST_CASE("check_table: shapes") {
  std::vector<double> const x(48, 1.0);
  auto const of = [&](shape const& s) { return table(tensor<double const>(x.data(), s)); };
  CHECK(checked(of({1, 1, 1, 4}), table_width::query) == "");
  CHECK(checked(of({2, 3, 2, 4}), table_width::query) == "");
  CHECK(checked(of({1, 3, 5, 1}), table_width::one) == "");
  CHECK(checked(of({1, 1, 5, 3}), table_width::any) == "");
  std::string const head = "attune::forward: table metric has ";
  CHECK(checked({}, table_width::any) == head + "no data; expected a view (1 or B, 1 or H, rows, columns)");
  std::string const shaped = head + "shape ", wanted = "; expected (1 or 2, 1 or 3, at least 1, ";
  CHECK(checked(of({1, 1, 1, 3}), table_width::query) == shaped + "(1, 1, 1, 3)" + wanted + "4)");
  CHECK(checked(of({1, 1, 5, 2}), table_width::one) == shaped + "(1, 1, 5, 2)" + wanted + "1)");
  CHECK(checked(of({3, 1, 1, 4}), table_width::query) == shaped + "(3, 1, 1, 4)" + wanted + "4)");
  CHECK(checked(of({1, 2, 1, 4}), table_width::query) == shaped + "(1, 2, 1, 4)" + wanted + "4)");
  CHECK(checked(of({1, 1, 0, 1}), table_width::one) == shaped + "(1, 1, 0, 1)" + wanted + "1)");
}

TEST_CASE("check_table: every entry is finite, or named with its place") {
  std::vector<double> x(24, 1.0);
  x[23] = inf;
  CHECK(checked(tensor<double const>(x, shape{1, 3, 2, 4}), table_width::query)
            .starts_with("attune::forward: table metric has the value inf at (0, 2, 1, 3); expected "));
  x[23] = nan;
  CHECK(checked(tensor<double const>(x, shape{1, 3, 2, 4}), table_width::query) != "");
}

}  // namespace
}  // namespace attune::test
