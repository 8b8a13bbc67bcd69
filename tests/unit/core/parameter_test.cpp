// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <string>
#include <vector>

#include <attune/core/dual.hpp>
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
  CHECK(error_of([&] { parameter(tensor(values, shape{1, 1, 3, 2})); }) ==
        "attune::parameter: the view has feature extent 2; expected 1: one number per (batch, head, query)");
}

TEST_CASE("projection: activation(<weight_h, x_i> + bias_h)") {
  std::vector<double> const x{1, 2, 3, 4, 5, 6}, weight{1, -1, 0.5, 0}, bias{10, 20};  // 3 queries, 2 heads, C = 2
  projection p{.x = tensor<double const>(x, shape{1, 1, 3, 2}),
               .weight = tensor<double const>(weight, shape{1, 2, 1, 2}),
               .bias = {}};
  CHECK(parameter(p).at(0, 0, 2) == -1);   // 5 - 6
  CHECK(parameter(p).at(0, 1, 2) == 2.5);  // 5 / 2
  p.bias = tensor<double const>(bias, shape{1, 2, 1, 1});
  parameter const biased = p;
  CHECK(biased.at(7, 0, 0) == 9);
  CHECK(biased.at(7, 1, 1) == 21.5);
  CHECK(biased.extents() == shape{1, 2, 3, 1});  // heads from the weight, queries from x
  CHECK(biased.is_projected());
  CHECK_FALSE(biased.is_average());
  CHECK_FALSE(biased.shared_by_queries());
  p.activation = activation::linear_clipping;
  CHECK(near(parameter(p).at(0, 0, 0), 1));  // clipped: 9
  p.bias = {};
  CHECK(near(parameter(p).at(0, 0, 0), 0.4));  // -1 / 10 + 1 / 2
  CHECK(near(parameter(p).pre_activation<double>(0, 0, 0), -1));
  CHECK(parameter(p).source().activation == activation::linear_clipping);
}

TEST_CASE("projection: without a weight x is the pre-activation; a bias alone adds heads") {
  std::vector<float> const x{0, 1};
  std::vector<double> const bias{0, ln3};
  parameter const p = projection{.x = tensor<float const>(x, shape{1, 1, 2, 1}),
                                 .weight = {},
                                 .bias = tensor<double const>(bias, shape{1, 2, 1, 1}),
                                 .activation = activation::sigmoid};
  CHECK(p.extents() == shape{1, 2, 2, 1});
  CHECK(p.at(0, 0, 0) == 0.5);
  CHECK(near(p.at(0, 1, 0), 0.75));
  CHECK(near(p.at(0, 0, 1), 1 / (1 + std::exp(-1.0))));
}

TEST_CASE("projection: bad shapes are named") {
  std::vector<double> const x(24);
  auto const of = [&](shape const& s) { return stored_view(tensor<double const>(x.data(), s)); };
  auto const text = [](projection const& p) { return error_of([&] { (void)parameter{p}; }); };
  CHECK(text({}) == "attune::parameter: projection.x has no data; expected a view (1 or B, 1 or H, 1 or Lq, C)");
  std::string const weight = "attune::parameter: projection.weight has shape ";
  CHECK(text({of({1, 1, 2, 3}), of({1, 2, 1, 4}), {}}) == weight + "(1, 2, 1, 4); expected (1, 1 or H, 1, 3)");
  CHECK(text({of({1, 1, 2, 3}), of({2, 2, 1, 3}), {}}) == weight + "(2, 2, 1, 3); expected (1, 1 or H, 1, 3)");
  CHECK(text({of({1, 1, 2, 3}), of({1, 2, 2, 3}), {}}) == weight + "(1, 2, 2, 3); expected (1, 1 or H, 1, 3)");
  CHECK(text({of({1, 1, 2, 3}), {}, {}}).starts_with(weight));  // C = 3 numbers and no weight
  CHECK(text({of({1, 1, 2, 3}), of({1, 2, 1, 3}), of({1, 1, 1, 2})}) ==
        "attune::parameter: projection.bias has shape (1, 1, 1, 2); expected (1, 1 or H, 1, 1)");
  CHECK(text({of({1, 1, 2, 3}), of({1, 2, 1, 3}), of({1, 2, 1, 1})}) == "");
}

TEST_CASE("moving average: momentum previous + (1 - momentum) mean over batches and queries, per head") {
  std::vector<double> const values{1, 3, 10, 30, 5, 7, 50, 70}, previous{100, 200};  // (2, 2, 2, 1)
  parameter const of = tensor<double const>(values, shape{2, 2, 2, 1});
  parameter const a = parameter::moving_average(of, 8, 0.75);
  CHECK(a.at(0, 0, 0) == 7);   // 0.75 * 8 + 0.25 * (1 + 3 + 5 + 7) / 4
  CHECK(a.at(1, 1, 1) == 16);  // 6 + 0.25 * 40
  CHECK(a.extents() == shape{1, 2, 1, 1});
  CHECK(a.shared_by_queries());
  CHECK(a.is_average());
  CHECK(a.momentum() == 0.75);
  CHECK_FALSE(a.passes_gradient());
  parameter const b = parameter::moving_average(of, per_head(previous), 0.5, average_gradient::passed);
  CHECK(b.at(0, 0, 0) == 52);   // 50 + 2
  CHECK(b.at(0, 1, 0) == 120);  // 100 + 20
  CHECK(b.passes_gradient());
}

TEST_CASE("moving average: of a projection, the mean is that of activated values") {
  std::vector<double> const x{-100, 0};
  parameter const p = projection{.x = tensor<double const>(x, shape{1, 1, 2, 1}),
                                 .weight = {},
                                 .bias = {},
                                 .activation = activation::linear_clipping};
  parameter const a = parameter::moving_average(p, 0, 0);
  CHECK(a.at(0, 0, 0) == 0.25);  // (0 + 1/2) / 2, not clip(-50)
  CHECK(a.is_projected());
  CHECK(a.is_average());
}

TEST_CASE("moving average: bad arguments are named") {
  std::vector<double> const two(2);
  parameter const rows = per_query(two, 1);
  auto const text = [](parameter const& of, parameter const& previous, double momentum) {
    return error_of([&] { parameter::moving_average(of, previous, momentum); });
  };
  std::string const at = "attune::parameter::moving_average: ";
  CHECK(text(1.0, 0, 0.9) == at + "of has no values per query; expected a view or a projection");
  CHECK(text(parameter::moving_average(rows, 0, 0.9), 0, 0.9) ==
        at + "of has no values per query; expected a view or a projection");
  CHECK(text(rows, 0, 1) == at + "momentum has the value 1; expected a number in [0, 1)");
  CHECK(text(rows, 0, nan) == at + "momentum has the value nan; expected a number in [0, 1)");
  CHECK(text(rows, {}, 0.9) == at + "previous has no stored value; expected a number or a view (1, 1 or H, 1, 1)");
  CHECK(text(rows, 0, 0) == "");
}

TEST_CASE("parameter: what is computed from stored numbers is computed in the scalar") {
  std::vector<double> const x{0.5};
  parameter const p = projection{
      .x = tensor<double const>(x, shape{1, 1, 1, 1}), .weight = {}, .bias = {}, .activation = activation::sigmoid};
  CHECK(p.value<float>(0, 0, 0) == math::sigmoid(0.5f));
  CHECK(p.value<dual<double, 1>>(0, 0, 0).value == p.at(0, 0, 0));
  CHECK(p.value<dual<double, 1>>(0, 0, 0).tangent[0] == 0);
}

TEST_CASE("domains: every kind of number against every domain") {
  struct expectation {
    double x;
    bool real, extended, real_or_minus_inf, positive, above_one;
    bool one_to_four = false;
  };
  for (expectation const& e : {expectation{2.0, true, true, true, true, true, true},   //
                               expectation{4.5, true, true, true, true, true},         //
                               expectation{4.0, true, true, true, true, true, true},   //
                               expectation{1.0, true, true, true, true, false, true},  //
                               expectation{1e-300, true, true, true, true, false},     //
                               expectation{0.0, true, true, true, false, false},       //
                               expectation{-3.0, true, true, true, false, false},      //
                               expectation{inf, false, true, false, false, false},     //
                               expectation{-inf, false, true, true, false, false},     //
                               expectation{nan, false, false, false, false, false}}) {
    CAPTURE(e.x);
    CHECK(detail::in_domain(e.x, domain::real) == e.real);
    CHECK(detail::in_domain(e.x, domain::extended) == e.extended);
    CHECK(detail::in_domain(e.x, domain::real_or_minus_inf) == e.real_or_minus_inf);
    CHECK(detail::in_domain(e.x, domain::positive) == e.positive);
    CHECK(detail::in_domain(e.x, domain::above_one) == e.above_one);
    CHECK(detail::in_domain(e.x, domain::one_to_four) == e.one_to_four);
  }
}

std::string checked(parameter const& p, domain d) {
  return error_of([&] { detail::check_parameter("forward", "gamma", p, d, 2, 3, 4); });  // batch 2, heads 3, queries 4
}

TEST_CASE("check_parameter: a shape that fits nothing names what would") {
  std::vector<double> const four(4), twelve(12);
  std::string const wanted = "; expected (1 or 2, 1 or 3, 1 or 4, 1)";
  CHECK(checked(per_head(four), domain::real) == "attune::forward: parameter gamma has shape (1, 4, 1, 1)" + wanted);
  CHECK(checked(per_query(twelve, 4), domain::real) ==
        "attune::forward: parameter gamma has shape (1, 4, 3, 1)" + wanted);
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
        "attune::forward: parameter gamma has the value nan at (batch, head, query) = (1, 2, 3); expected a number, "
        "-inf or "
        "+inf");
  CHECK(checked(inf, domain::real).find("; expected a finite number") != std::string::npos);
  CHECK(checked(inf, domain::real_or_minus_inf).find("; expected a finite number or -inf") != std::string::npos);
  CHECK(checked(1.0, domain::above_one).find("; expected a finite number > 1") != std::string::npos);
  CHECK(checked(4.5, domain::one_to_four).find("; expected a number in [1, 4]") != std::string::npos);
  CHECK(checked(-inf, domain::real_or_minus_inf) == "");
}

}  // namespace
}  // namespace attune::test
