// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Guidelines and wishes.
#include <algorithm>
#include <cmath>

#include <unit/check.hpp>

#include <attune/analysis/desiderata.hpp>
#include <attune/analysis/monitor.hpp>
#include <attune/policies/length_scale/none.hpp>
#include <attune/policies/length_scale/ssmax.hpp>
#include <attune/policies/normalizer/entmax.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::error_of;
using attune::test::near;

namespace {

bool warns(monitor const& m, guideline g, index_t head, bool trend = false) {
  return std::any_of(m.warnings().begin(), m.warnings().end(),
                     [&](warning const& w) { return w.what == g && w.head == head && w.trend == trend; });
}
head_reading reading(double entropy, double separable, double temperature = 1, double sink = 0.1) {
  head_reading r;
  r.entropy = entropy;
  r.separable = separable;
  r.temperature = temperature;
  r.sink_share = sink;
  return r;
}

}  // namespace

TEST_CASE("a quiet head warns of nothing; what was not measured is not judged") {
  monitor m(3);
  m.step({reading(0.5, 0.9), reading(0.5, 0.9), reading(0.5, 0.9)});
  CHECK(m.warnings().empty());
  CHECK(near(m.coverage(), 0.999));
  m.step({head_reading{}, head_reading{}, head_reading{}});
  CHECK(m.warnings().empty());
  CHECK(std::isnan(m.coverage()));
  CHECK(m.steps() == 2);
  CHECK(error_of([&] { m.step({}); }) ==
        "attune::analysis::monitor::step: readings has the length 0; expected length 3");
}

TEST_CASE("each guideline has its warning") {
  monitor m(2);
  m.step({reading(0.05, 0.6, 0.05, 0.6), reading(0.99, 0.8)});
  CHECK(warns(m, guideline::entropy_collapse, 0));
  CHECK(warns(m, guideline::separability, 0));
  CHECK(warns(m, guideline::temperature, 0));
  CHECK(warns(m, guideline::sink, 0));
  CHECK(warns(m, guideline::entropy_diluted, 1));
  CHECK(!warns(m, guideline::separability, 1));
  CHECK(warns(m, guideline::coverage, -1));  // 1 - 0.4 0.2 = 0.92
  CHECK(near(m.coverage(), 0.92));
  CHECK(m.warnings().size() == 6);
  CHECK(to_string(guideline::sink) == "sink share");
}

TEST_CASE("trends: a fall against the running average is seen above every limit") {
  monitor m(1, {.least_coverage = 0});
  for (int i = 0; i < 20; ++i) m.step({reading(0.8, 0.95)});
  CHECK(m.warnings().empty());
  m.step({reading(0.6, 0.8, 1, 0.3)});
  CHECK(warns(m, guideline::entropy_collapse, 0, true));
  CHECK(warns(m, guideline::separability, 0, true));
  CHECK(warns(m, guideline::sink, 0, true));
  CHECK(m.warnings().size() == 3);
  CHECK(near(m.average(0).entropy, 0.9 * 0.8 + 0.1 * 0.6));
}

TEST_CASE("readings: from an operator's statistics, from a row and its values") {
  head_statistics<float> s;
  s.normalized_entropy = float(std::log(4.0));
  s.ground_weight = 0.25f;
  head_reading const r = reading_of(s, 16);
  CHECK(near(r.entropy, 0.5, 1e-6));
  CHECK(r.sink_share == 0.25);
  CHECK(reading_of(s, 1).entropy == 0);
  std::vector<double> const w{0.5, 0.3, 0.2}, v{1, 1, 0.5};  // y = 0.5, 0.3, 0.1; s = 0.8: 0.3, 0.5 against 0.7
  CHECK(separable_share(w, points<double>(v, 1), 2) == 1);
}

TEST_CASE(
    "wishes: softmax dilutes, SSMax keeps, entmax is sparse, SSMax with entmax is both; neither calms the gradient") {
  auto const softmax_row = wishes_of(length_scale::none{}, normalizer::softmax{});
  CHECK(softmax_row.kept_weight < 0.05);
  CHECK(softmax_row.empty_share == 0);
  CHECK(softmax_row.gradient_norm <= 0.5);
  CHECK(near(softmax_row.gradient_growth, 1, 1e-12));
  auto const scaled = wishes_of(length_scale::ssmax{1.0}, normalizer::softmax{});
  CHECK(scaled.kept_weight > 0.9);
  auto const sparse = wishes_of(length_scale::none{}, normalizer::sparsemax{});
  CHECK(sparse.empty_share > 0.7);
  CHECK(near(sparse.gradient_norm, 1));
  auto const both = wishes_of(length_scale::ssmax{1.0}, normalizer::entmax15{});
  CHECK(both.kept_weight > 0.99);
  CHECK(both.empty_share > 0.7);
  CHECK(both.gradient_norm > softmax_row.gradient_norm);  // log K steeper
}
