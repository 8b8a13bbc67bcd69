// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

/// One row of given logits; the keys that `visible` hides, on both executors.
struct one_row {
  std::vector<double> logits;
  std::vector<unsigned char> visible = {};
  statistics_request request = {};

  template <class Normalizer, class Check>
  void operator()(Normalizer const& n, Check const& check) const {
    index_t const keys = index_t(logits.size());
    std::vector<double> const v(std::size_t(keys), 1.0);
    tensor<double const> const scores(logits, shape{1, 1, 1, keys}), values(v, shape{1, 1, keys, 1});
    auto const op = attention(
        kernel::given_scores{}, n,
        mask::runtime{.visible = visible.empty() ? nullptr : visible.data(), .visible_shape = {1, 1, 1, keys}});
    check(statistics(forward(reference<double>{}, op, {.v = values, .scores = scores}), request));
    std::vector<double> out(1);
    auto const rows = forward_and_save(cpu<double>{1}, op, {.v = values, .scores = scores},
                                       {.out = tensor<double>(out, shape{1, 1, 1, 1})});
    check(statistics(cpu<double>{1}, op, {.v = values, .scores = scores}, rows, request));
  }
};

TEST_CASE("statistics: what each number is") {
  // softmax of log 1, log 2, log 5: 1/8, 1/4, 5/8
  one_row{{0, std::log(2.0), std::log(5.0)}, {}, {.columns = true, .above = 0.25}}(
      normalizer::softmax{}, [](row_statistics<double> const& s) {
        CHECK(near(s.highest_logit[0], std::log(5.0)));
        CHECK(near(s.mean_logit[0], std::log(10.0) / 3));
        CHECK(s.scored[0] == 3);
        CHECK(near(s.highest_weight[0], 0.625));
        CHECK(near(s.mass[0], 1));
        CHECK(near(s.first_key[0], 0.125));
        CHECK(s.ground_weight[0] == 0);
        CHECK(near(s.entropy[0], 0.125 * std::log(8) + 0.25 * std::log(4) - 0.625 * std::log(0.625)));
        CHECK(near(s.normalized_entropy(0), s.entropy[0]));
        CHECK(s.above[0] <= 2);
        CHECK(s.above[0] >= 1);  // 1/4 is on the edge
        CHECK(near(s.columns[0], 0.125));
        CHECK(near(s.columns[2], 0.625));
      });
  // a sink of as much mass as the keys: all weights half as large
  one_row{{ln2, 0, 0}}(normalizer::sink{std::log(4.0)}, [](row_statistics<double> const& s) {
    CHECK(near(s.mass[0], 0.5));
    CHECK(near(s.ground_weight[0], 0.5));
    CHECK(near(s.entropy[0], 0.25 * std::log(4) + 0.25 * std::log(8)));
    CHECK(near(s.normalized_entropy(0), 0.5 * std::log(2) + 0.5 * std::log(4)));
    CHECK(near(s.effective_keys(0), std::sqrt(8)));
    CHECK(s.above.empty());
    CHECK(s.columns.empty());
  });
}

TEST_CASE("statistics: correctly rounded values of given weights") {
  // Case entropy_0 of tests/golden/cases/diagnostics.json.
  constexpr double weights[3][5] = {
      {0, 0, 0.08153460174798965, 0.7443499565124512, 0.01370656955987215},
      {0.07900787144899368, 0.6985457539558411, 0.1499834507703781, 0.028952132910490036, 0.043510764837265015},
      {0.043065231293439865, 0.4374481439590454, 0.05568135902285576, 0.09995346516370773, 0.3638518154621124}};
  constexpr double expected[3][6] = {
      {0.4829494368641292, 0.4003795372765734, 0.839591127820313, 0.7443499565124512, 1.4923910081853209, 0},
      {0.9746449626783664, 0.9746449620171825, 0.9999999739229679, 0.6985457539558411, 2.6502261129965587,
       0.07900787144899368},
      {1.255991782841914, 1.2559917790273394, 1.0000000149011612, 0.4374481439590454, 3.5113191006439135,
       0.043065231293439865}};
  for (std::size_t n = 0; n < 3; ++n) {
    one_row row;
    row.logits.assign(weights[n], weights[n] + 5);
    row(normalizer::relu{}, [&](row_statistics<double> const& s) {  // w = a
      double const got[6] = {s.entropy[0],        s.normalized_entropy(0), s.mass[0],
                             s.highest_weight[0], s.effective_keys(0),     s.first_key[0]};
      for (std::size_t i = 0; i < 6; ++i) CHECK(near(got[i], expected[n][i]));
    });
  }
}

TEST_CASE("statistics: rows in which no key counts") {
  auto const nothing = [](row_statistics<double> const& s) {
    CHECK(s.highest_logit[0] == -inf);
    CHECK(s.mean_logit[0] == -inf);
    CHECK(s.scored[0] == 0);
    CHECK(s.mass[0] == 0);
    CHECK(s.first_key[0] == 0);
    CHECK(s.ground_weight[0] == 1);
    CHECK(s.entropy[0] == 0);
    CHECK(s.normalized_entropy(0) == 0);
    CHECK(s.effective_keys(0) == 0);
    CHECK(s.columns[0] == 0);
    CHECK(s.columns[1] == 0);
    CHECK(head_means(s)[0].rows == 0);
    CHECK(head_means(s)[0].ground_weight == 0);
  };
  statistics_request const all{.columns = true, .above = -1.0};
  one_row{{nan, 1}, {0, 0}, all}(normalizer::sink{0.0}, [&](row_statistics<double> const& s) {
    nothing(s);
    CHECK(s.highest_weight[0] == -inf);
    CHECK(s.above[0] == 0);
  });
  one_row{{-inf, -inf}, {}, all}(normalizer::sink{0.0}, [&](row_statistics<double> const& s) {
    nothing(s);
    CHECK(s.highest_weight[0] == 0);  // of two visible keys
    CHECK(s.above[0] == 2);
  });
}

TEST_CASE("statistics: some logits -inf, hidden garbage, NaN") {
  one_row{{nan, 2, -inf, inf, 0}, {0, 1, 1, 0, 1}, {.columns = true}}(normalizer::softmax{},
                                                                      [](row_statistics<double> const& s) {
                                                                        CHECK(s.highest_logit[0] == 2);
                                                                        CHECK(s.mean_logit[0] == 1);
                                                                        CHECK(s.scored[0] == 2);
                                                                        CHECK(near(s.mass[0], 1));
                                                                        CHECK(s.first_key[0] == 0);  // hidden
                                                                        CHECK(s.entropy[0] > 0);
                                                                        CHECK(s.columns[0] == 0);
                                                                        CHECK(s.columns[2] == 0);
                                                                        CHECK(s.columns[3] == 0);
                                                                      });
  auto const is_nan = [](row_statistics<double> const& s) {
    CHECK(std::isnan(s.highest_logit[0]));
    CHECK(std::isnan(s.mean_logit[0]));
    CHECK(std::isnan(s.highest_weight[0]));
    CHECK(std::isnan(s.mass[0]));
    CHECK(std::isnan(s.entropy[0]));
    CHECK(std::isnan(s.effective_keys(0)));
    CHECK(std::isnan(s.columns[0]));
    CHECK(s.columns[1] == 0);
    CHECK(std::isnan(s.columns[2]));  // its logit of -inf does not save it: the row is NaN
    CHECK(std::isnan(head_means(s)[0].mass));
  };
  statistics_request const all{.columns = true};
  one_row{{1, 5, -inf, nan}, {1, 0, 1, 1}, all}(normalizer::softmax{}, is_nan);
  one_row{{1, 5, -inf, nan}, {1, 0, 1, 1}, all}(normalizer::sparsemax{}, is_nan);
  one_row{{1, 5, -inf, nan}, {1, 0, 1, 1}, all}(normalizer::self_adjusted<normalizer::adjusted_form::full_range>{},
                                                is_nan);
}

TEST_CASE("statistics: signed weights have a mass and no entropy") {
  one_row{{0, 0, 8}}(normalizer::affine<>{.alpha = 0.9, .average = 0.5}, [](row_statistics<double> const& s) {
    CHECK(near(s.mass[0], 0.5));
    CHECK(s.first_key[0] < 0);
    CHECK(std::isnan(s.entropy[0]));
    CHECK(std::isnan(s.normalized_entropy(0)));
  });
  one_row{{0, 3}}(normalizer::centered_relu{}, [](row_statistics<double> const& s) {
    CHECK(s.mass[0] == 0);
    CHECK(std::isnan(s.effective_keys(0)));
  });
  // all of them negative: the hidden key's 0 is no weight
  one_row{{0, 1, 0}, {1, 0, 1}, {.above = -1.0}}(normalizer::affine<>{.alpha = 0.5, .average = -1},
                                                 [](row_statistics<double> const& s) {
                                                   CHECK(near(s.highest_weight[0], -0.5));
                                                   CHECK(s.above[0] == 2);
                                                 });
}

TEST_CASE("statistics: a weight on the edge is not above it") {
  std::vector<double> x(130, 1.0);
  x[70] = 0;
  one_row row{x, {}, {.above = 0.5}};
  row(normalizer::relu{}, [](row_statistics<double> const& s) { CHECK(s.above[0] == 129); });
  one_row{{0.5, 1}, {}, {.above = 0.5}}(normalizer::relu{},
                                        [](row_statistics<double> const& s) { CHECK(s.above[0] == 1); });
}

TEST_CASE("merge: parts of a row, and the unit") {
  problem_shape p;
  p.batch = p.heads = p.queries = 1;
  p.keys = 3;
  statistics_request const r{.columns = true, .above = 0.5};
  row_statistics<double> const unit(p, r);
  row_statistics<double> a = unit, b = unit;
  a.highest_logit[0] = 3, a.mean_logit[0] = 2, a.scored[0] = 1, a.highest_weight[0] = 0.5, a.mass[0] = 0.75;
  a.entropy[0] = 0.25, a.above[0] = 1, a.columns[0] = 0.5, a.ground_weight[0] = 0.125;
  b.highest_logit[0] = 4, b.mean_logit[0] = -1, b.scored[0] = 2, b.highest_weight[0] = 0.25, b.mass[0] = 0.125;
  b.entropy[0] = 0.5, b.above[0] = 2, b.columns[1] = 0.25, b.ground_weight[0] = 0.125;
  for (auto const& m : {merge(a, b), merge(b, a), merge(merge(a, unit), merge(b, unit))}) {
    CHECK(m.highest_logit[0] == 4);
    CHECK(near(m.mean_logit[0], 0));
    CHECK(m.scored[0] == 3);
    CHECK(m.highest_weight[0] == 0.5);
    CHECK(m.mass[0] == 0.875);
    CHECK(m.entropy[0] == 0.75);
    CHECK(m.above[0] == 3);
    CHECK(m.columns[0] == 0.5);
    CHECK(m.columns[1] == 0.25);
    CHECK(m.columns[2] == 0);
    CHECK(m.ground_weight[0] == 0.125);  // of the row, not of its parts
  }
  b.highest_logit[0] = b.mass[0] = b.mean_logit[0] = nan;
  CHECK(std::isnan(merge(a, b).highest_logit[0]));
  CHECK(std::isnan(merge(b, a).highest_logit[0]));
}

TEST_CASE("head_means: over batches and queries, empty rows left out") {
  problem_shape p;
  p.batch = p.heads = 2;
  p.queries = 3;
  p.keys = 4;
  row_statistics<float> s(p, {.above = 0.5});
  auto const set = [&](index_t b, index_t i, float x) {
    auto const n = std::size_t(s.at(b, 1, i));
    s.scored[n] = 2, s.highest_logit[n] = x, s.mean_logit[n] = -x, s.mass[n] = x / 8, s.above[n] = 1;
  };
  set(0, 1, 2), set(1, 0, 4), set(1, 2, 6);
  auto const heads = head_means(s);
  CHECK(heads.size() == 2);
  CHECK(heads[0].rows == 0);
  CHECK(heads[0].highest_logit == 0);
  CHECK(heads[1].rows == 3);
  CHECK(heads[1].highest_logit == 4);
  CHECK(heads[1].mean_logit == -4);
  CHECK(heads[1].mass == 0.5f);
  CHECK(heads[1].above == 1);
  row_statistics<float> const bare(p, {.entropy = false});
  CHECK(std::isnan(head_means(bare)[1].entropy));
  CHECK(std::isnan(head_means(bare)[1].above));
}

TEST_CASE("statistics: what is wrong is named") {
  std::vector<float> x(24, 0.5f), out(8);
  tensor<float const> const q(x.data(), {1, 2, 2, 2}), k(x.data(), {1, 2, 3, 2});
  tensor<float> const o(out, shape{1, 2, 2, 2});
  auto const op = attention(kernel::dot_product{});
  auto const rows = forward_and_save(cpu{1}, op, {.q = q, .k = k, .v = k}, {.out = o});
  auto const of = [&](statistics_request const& r, key_interval keys) {
    return statistics(cpu{1}, op, {.q = q, .k = k, .v = k}, rows, r, keys);
  };
  CHECK(error_of([&] { of({.above = nan}, {0, 3}); }) ==
        "attune::statistics: .above has the value nan; expected a number");
  CHECK(error_of([&] { of({}, {1, 4}); }) ==
        "attune::statistics: keys has the interval [1, 4); expected one within [0, 3)");
  tensor<float const> const other(x.data(), {1, 2, 3, 2});
  CHECK(error_of([&] { statistics(cpu{1}, op, {.q = other, .k = k, .v = k}, rows); }) ==
        "attune::statistics: saved has rows of shape (1, 2, 2, 2); expected (1, 2, 3, 2), those of the inputs");
  auto const first = of({.entropy = false}, {0, 2}), rest = of({}, {2, 3});
  CHECK(error_of([&] { merge(first, rest); }) ==
        "attune::merge: the second part has another request; expected that of the first");
  CHECK(error_of([&] { first.effective_keys(0); }) ==
        "attune::row_statistics: entropy has no numbers; expected a request with .entropy = true");
  row_statistics<float> longer(first.extents, first.request);
  longer.extents.keys = 4;
  CHECK(
      error_of([&] { merge(first, longer); }) ==
      "attune::merge: the second part has 4 keys; expected 3, as the first: both count the keys of the whole problem");
}

}  // namespace
}  // namespace attune::test
