// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Texts that programs read have a decimal point in every locale.
#include <sstream>
#include <string>
#include <vector>

#define ATTUNE_C_TYPES 1
#include <attune/interop/c_operator.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
#include <attune/testing/forward_report.hpp>
#include <attune/testing/gradient_report.hpp>
#include <attune/testing/interop/report_json.hpp>

#include "../../support/comma_locale.hpp"
#include "../check.hpp"

ATTUNE_C_OPERATOR(sloped, attention(kernel::dot_product{} + kernel::alibi{0.25}, normalizer::sink{-1.5}, m))

namespace attune::test {
namespace {

testing::verdict_report failed() {
  testing::verdict_report r;
  r.decision = testing::judgement::fail;
  r.false_alarms = 1.5e-3;
  r.seed = 123456;
  testing::finding f;
  f.name = "kernel.scale", f.parameter = f.relative = true, f.estimate = 0.0125, f.power = 0.5;
  r.findings = {f};
  r.caused = true;
  testing::worst_element e;
  e.output = "out", e.outside = 4321, e.count = 98765, e.ratio = 2.5, e.place = {0, 1, 4321, 3};
  r.elements = {e};
  testing::energy_excess x;
  x.output = "out", x.found = true, x.overall = 7.25, x.maps = {{"head", {1.5, 0.25}}};
  r.energies = {x};
  r.by_query = std::vector<double>(2000, 2.5);
  r.by_key = {-0.5, 0.25};
  return r;
}
/// What operator<< prints into a stream that is made here and now.
template <class Report>
std::string shown(Report const& r) {
  std::ostringstream to;
  to << r;
  return to.str();
}

TEST_CASE("a decimal comma: JSON, descriptions of operators and printed reports keep their points") {
  testing::gradient_report gradients;
  gradients.seed = 123456;
  gradients.magnitude = 1.5;
  gradients.directions.name = "along directions";
  gradients.directions.magnitude = 2.5;
  gradients.directions.differences = {7, 1.5e-7, 1e-3};
  testing::forward_report forward;
  forward.seed = 123456;
  forward.lines = {{"cpu<float>", "forward", 0.25, "", ""}};
  std::string const json = testing::json_of(failed()), verdict = shown(failed()), of_gradients = shown(gradients),
                    of_forward = shown(forward);
  CHECK(verdict.find("4321 of 98765 outside the bound; worst error / bound 2.5; the residuals are 7.25 times what") !=
        verdict.npos);
  CHECK(of_gradients.find("along directions  up to  2.5e+00; differences 1.5e-07\n") != of_gradients.npos);
  CHECK(of_forward.find("0.25 of what is allowed") != of_forward.npos);
  CHECK(failed().findings[0].amount(0.0125, true) == "+1.25 %");

  comma_locale const here;
  if (!here.of_c()) MESSAGE("no locale could be made: printf was not tried");
  CHECK(testing::json_of(0.1) == "0.10000000000000001");
  CHECK(testing::json_of(failed()) == json);
  CHECK(shown(failed()) == verdict);
  CHECK(shown(gradients) == of_gradients);
  CHECK(shown(forward) == of_forward);
  std::string const described = interop::operator_sloped()->description;
  CHECK(described.find("\"value\": 0.25,") != described.npos);
  CHECK(described.find("\"value\": -1.5,") != described.npos);
}

}  // namespace
}  // namespace attune::test
