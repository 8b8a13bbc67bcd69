// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <string>
#include <vector>

#include <attune/core/parameter.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("parameter: unset, one value") {
  CHECK_FALSE(parameter{}.is_set());
  parameter const p = 0.25;
  CHECK(p.is_set());
  CHECK(p.shared_by_queries());
  CHECK(p.at(0, 0, 0) == 0.25);
  CHECK(p.at(7, 8, 9) == 0.25);
  CHECK(p.extents() == shape{1, 1, 1, 1});
  CHECK(parameter(-inf).at(0, 0, 0) == -inf);
}

TEST_CASE("per_head: float and double storage, shared by batch and queries") {
  std::vector<double> const doubles{1, 2, 3};
  std::vector<float> const floats{0.5f, 1.5f};
  parameter const d = per_head(doubles), f = per_head(floats);
  CHECK(d.extents() == shape{1, 3, 1, 1});
  CHECK(d.shared_by_queries());
  CHECK(d.at(9, 2, 9) == 3);
  CHECK(f.at(9, 1, 9) == 1.5);
}

TEST_CASE("per_query: row-major heads x queries") {
  std::vector<double> const values{1, 2, 3, 4, 5, 6};
  parameter const p = per_query(values, 2);  // 2 heads of 3 queries
  CHECK(p.extents() == shape{1, 2, 3, 1});
  CHECK_FALSE(p.shared_by_queries());
  CHECK(p.at(4, 0, 2) == 3);
  CHECK(p.at(4, 1, 0) == 4);
  std::string const wanted = "; expected a positive multiple of the number of heads";
  CHECK(error_of([&] { per_query(values, 4); }) == "attune::per_query: values has 6 numbers for 4 heads" + wanted);
  CHECK(error_of([&] { per_query(values, 0); }) == "attune::per_query: values has 6 numbers for 0 heads" + wanted);
}

TEST_CASE("parameter: a view is broadcast along axes of extent 1, whatever their stride") {
  std::vector<double> values{1, 2, 3, 4, 5, 6};
  parameter const per_batch = tensor<double>(values.data(), {3, 1, 1, 1}, {2, 77, 77, 77});
  CHECK(per_batch.at(0, 5, 5) == 1);
  CHECK(per_batch.at(2, 5, 5) == 5);
  CHECK(per_batch.shared_by_queries());
  parameter const reversed = tensor<double>(values.data() + 5, {1, 1, 6, 1}, {0, 0, -1, 1});
  CHECK(reversed.at(0, 0, 0) == 6);
  CHECK(reversed.at(0, 0, 5) == 1);
  CHECK_FALSE(reversed.shared_by_queries());
}

TEST_CASE("parameter: a view has one number per row") {
  std::vector<float> values(6);
  CHECK(error_of([&] {
          parameter(tensor(values, shape{1, 1, 3, 2}));
        }) == "attune::parameter: the view has feature extent 2; expected 1: one number per (batch, head, query)");
}

TEST_CASE("domains: every kind of number against every domain") {
  struct expectation {
    double x;
    bool real, extended, real_or_minus_inf, positive, above_one;
  };
  for (expectation const& e : {expectation{2.0, true, true, true, true, true},      //
                               expectation{1.0, true, true, true, true, false},     //
                               expectation{1e-300, true, true, true, true, false},  //
                               expectation{0.0, true, true, true, false, false},    //
                               expectation{-3.0, true, true, true, false, false},   //
                               expectation{inf, false, true, false, false, false},  //
                               expectation{-inf, false, true, true, false, false},  //
                               expectation{nan, false, false, false, false, false}}) {
    CAPTURE(e.x);
    CHECK(detail::in_domain(e.x, domain::real) == e.real);
    CHECK(detail::in_domain(e.x, domain::extended) == e.extended);
    CHECK(detail::in_domain(e.x, domain::real_or_minus_inf) == e.real_or_minus_inf);
    CHECK(detail::in_domain(e.x, domain::positive) == e.positive);
    CHECK(detail::in_domain(e.x, domain::above_one) == e.above_one);
  }
}

std::string checked(parameter const& p, domain d) {
  return error_of([&] { detail::check_parameter("forward", "gamma", p, d, 2, 3, 4); });  // batch 2, heads 3, queries 4
}

TEST_CASE("check_parameter: a shape that fits nothing names what would") {
  std::vector<double> const four(4), twelve(12);
  std::string const wanted = "; expected (1 or 2, 1 or 3, 1 or 4, 1)";
  CHECK(checked(per_head(four), domain::real) == "attune::forward: parameter gamma has shape (1, 4, 1, 1)" + wanted);
  CHECK(checked(per_query(twelve, 4), domain::real) == "attune::forward: parameter gamma has shape (1, 4, 3, 1)" + wanted);
  CHECK(checked(tensor(four, shape{4, 1, 1, 1}), domain::real) ==
        "attune::forward: parameter gamma has shape (4, 1, 1, 1)" + wanted);
  CHECK(checked(per_query(twelve, 3), domain::real) == "");
  CHECK(checked(parameter{}, domain::positive) == "");  // never set: the policy has a default
}

TEST_CASE("check_parameter: a value outside the domain is named with its place") {
  std::vector<double> const heads{1, -2, 3};
  std::vector<float> rows(24, 1.0f);
  rows[23] = float(nan);  // (1, 2, 3) of (2, 3, 4)
  CHECK(checked(per_head(heads), domain::positive) ==
        "attune::forward: parameter gamma has the value -2 at (batch, head, query) = (0, 1, 0); expected a finite "
        "number > 0");
  CHECK(checked(tensor(rows, shape{2, 3, 4, 1}), domain::extended) ==
        "attune::forward: parameter gamma has the value nan at (batch, head, query) = (1, 2, 3); expected a number, -inf or "
        "+inf");
  CHECK(checked(inf, domain::real).find("; expected a finite number") != std::string::npos);
  CHECK(checked(inf, domain::real_or_minus_inf).find("; expected a finite number or -inf") != std::string::npos);
  CHECK(checked(1.0, domain::above_one).find("; expected a finite number > 1") != std::string::npos);
  CHECK(checked(-inf, domain::real_or_minus_inf) == "");
}

}  // namespace
}  // namespace attune::test
