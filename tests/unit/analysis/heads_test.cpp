// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rows and heads, samples and gradient norms, logarithms of shares.
#include <cmath>
#include <utility>

#include <unit/check.hpp>

#include <attune/analysis/gradient_norms.hpp>
#include <attune/analysis/heads.hpp>
#include <attune/analysis/kolmogorov_smirnov.hpp>
#include <attune/core/log_domain.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::error_of;
using attune::test::inf;
using attune::test::ln2;
using attune::test::near;

namespace {

using numbers_t = std::vector<double>;

}  // namespace

TEST_CASE("the shape of a row: entropy of the weights, and of what they are of their sum") {
  auto const s = shape_of(numbers_t{0.25, 0, 0.25, 0});
  CHECK(s.mass == 0.5);
  CHECK(s.sink_share == 0.5);
  CHECK(s.first_key == 0.25);
  CHECK(near(s.entropy, ln2));
  CHECK(near(s.normalized_entropy, ln2));
  CHECK(near(s.effective_keys, 2));
  auto const none = shape_of(numbers_t{0, 0});
  CHECK(none.effective_keys == 0);
  CHECK(none.entropy == 0);
  CHECK(std::isnan(shape_of(numbers_t{1.5, -0.5}).entropy));
}

TEST_CASE("coverage of heads") {
  CHECK(near(head_coverage(0.8, 3), 0.992));
  CHECK(head_coverage(0.8, 0) == 0);
  CHECK(head_coverage(1.0, 5) == 1);
  CHECK(heads_needed(0.8, 0.99) == 3);
  CHECK(heads_needed(0.8, 0.96) == 2);  // 1 - 0.04, on the edge
  CHECK(heads_needed(1.0, 1.0) == 1);
  CHECK(near(head_coverage(1e-300, 2), 2e-300));
  CHECK(error_of([] { head_coverage(1.5, 2); }) ==
        "attune::analysis::head_coverage: p has the value 1.5; expected a share in [0, 1]");
  CHECK(error_of([] { heads_needed(0.5, 1.0); }).find("target has the value 1") != std::string::npos);
}

TEST_CASE("the map of a head: least weight 0, largest 1; a row that is all sink is 0") {
  numbers_t const w{0.2, 0.4, 0.1, 0.3};
  CHECK(head_map(points<double>(w, 2))[3] == doctest::Approx(2.0 / 3));
  numbers_t const kept = head_map(points<double>(w, 2), numbers_t{0.4, 0.6});  // (1/3, 2/3), (1/4, 3/4)
  CHECK(kept[0] == doctest::Approx((1.0 / 3 - 0.25) / 0.5));
  CHECK(kept[2] == 0);
  CHECK(kept[3] == 1);
  numbers_t const gone = head_map(points<double>(w, 2), numbers_t{0.4, 1});
  CHECK(gone[2] == 0);
  numbers_t const flat(4, 0.25);
  CHECK(head_map(points<double>(flat, 2)) == numbers_t(4, 0.0));
}

TEST_CASE("similarity: 1 for equal heads up to a factor, 0 for heads without a common key") {
  numbers_t const a{1, 0, 0, 1}, b{0, 1, 1, 0}, half{0.5, 0, 0, 0.5};
  points<double> const pa(a, 2), pb(b, 2), ph(half, 2);
  CHECK(near(head_similarity(pa, pb), 0, 1e-15));
  CHECK(head_similarity(pa, ph) == 1);
  CHECK(near(jensen_shannon(numbers_t{1, 0}, numbers_t{0.5, 0.5}),
             0.5 * (std::log(4.0 / 3) + 0.5 * std::log(2.0 / 3) + 0.5 * ln2)));
  numbers_t const empty{0, 0, 1, 1};
  CHECK(near(head_similarity(pa, points<double>(empty, 2)),
             1 - jensen_shannon(numbers_t{0, 1}, numbers_t{0.5, 0.5}) / ln2));
}

TEST_CASE("Kolmogorov and Smirnov: ties move both, p falls with D, the critical D has p at its level") {
  CHECK(kolmogorov_smirnov(numbers_t{1, 2, 3}, numbers_t{1, 2, 3}) == 0);
  CHECK(kolmogorov_smirnov(numbers_t{1, 2}, numbers_t{3, 4}) == 1);
  CHECK(near(kolmogorov_smirnov(numbers_t{1, 2, 2, 3}, numbers_t{2, 2, 4}), 0.25 + 1.0 / 12));  // at 3: 1 and 2/3
  CHECK(kolmogorov_smirnov_p(0.0, 5, 5) == 1);
  CHECK(kolmogorov_smirnov_p(1e-3, 5, 5) == 1);
  double const critical = kolmogorov_smirnov_critical(0.01, 144, 144);
  CHECK(near(critical, std::sqrt(0.5 * std::log(200.0)) * std::sqrt(2.0 / 144)));
  CHECK(near(kolmogorov_smirnov_p(critical, 144, 144), 0.01, 1e-6));
  CHECK(error_of([] { kolmogorov_smirnov(numbers_t{}, numbers_t{1}); }).find("the size of a has the value 0") !=
        std::string::npos);
}

TEST_CASE("the critical N is the first at which samples look alike") {
  auto const samples = [](index_t n) {
    numbers_t a, b;
    for (int i = 0; i < 50; ++i) {
      a.push_back(i);
      b.push_back(i + 60.0 / double(n));
    }
    return std::pair{a, b};
  };
  CHECK(critical_count({1, 2, 4, 8}, samples) == index_t(4));  // shifts of 60, 30, 15, 7.5 of 50: D = 1, 0.6, 0.3
  CHECK(!critical_count({1, 2}, samples));
}

TEST_CASE("gradient norms: median, MAD, spikes") {
  numbers_t const g{1, 2, 3, 4, 100};
  auto const s = statistics_of(g);
  CHECK(s.mean == 22);
  CHECK(s.median == 3);
  CHECK(s.absolute_deviation == 1);
  CHECK(near(s.sample_variance, s.population_variance * 5 / 4));
  CHECK(near(s.variation, s.population_deviation / 22));
  CHECK(spike_threshold(s, 6.0) == 9);
  CHECK(spikes(g, 6.0) == 1);
  CHECK(spikes(g, 97.0) == 0);  // on the threshold: no spike
  CHECK(median_of(numbers_t{4, 1}) == 2.5);
  CHECK(error_of([] { median_of(numbers_t{}); }) ==
        "attune::analysis::median_of: values has no numbers; expected at least one");
}

TEST_CASE("logarithms of shares keep their digits on both sides") {
  CHECK(near(math::log_sigmoid(-800.0), -800));
  CHECK(near(math::log_sigmoid(50.0), -std::exp(-50.0)));
  CHECK(math::log1m_exp(0.0) == -inf);
  CHECK(near(math::log1m_exp(1e-20), std::log(1e-20)));
  CHECK(near(math::log1m_exp(-50.0), -std::exp(-50.0)));
  CHECK(near(math::softplus_inverse(math::softplus(-30.0)), -30));
  CHECK(near(math::softplus_inverse(800.0), 800));
  CHECK(std::isnan(math::softplus_inverse(-1.0)));
}
