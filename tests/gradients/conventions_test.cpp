// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Derivatives where there is more than one: kinks and ties take the side that the policies document. Answers by hand.
#include <array>

#include <doctest/doctest.h>

#include <attune/exec/reference/backward.hpp>
#include <attune/policies.hpp>

#include "gradients/dense.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// One row of given scores; values are one number each, so that h_j = v_j with do = 1.
struct scored_row {
  std::vector<double> scores, v;
  double by_lse = 0;

  template <class Normalizer>
  dense_gradients<double> gradients(Normalizer n, double v0 = 0) const {
    index_t const keys = index_t(scores.size());
    dense const s({1, 1, 1, keys}, scores), values({1, 1, keys, 1}, v), ground({1, 1, 1, 1}, v0),
        one({1, 1, 1, 1}, 1.0), lse({1, 1, 1, 1}, by_lse);
    auto const op = attention(kernel::given_scores{}, n);
    using op_type = std::remove_const_t<decltype(op)>;
    cotangents<op_type, any_tensor> c{.out = one.view()};
    if constexpr (op_type::has_lse) c.lse = lse.view();
    if constexpr (op_type::uses(field::v0))
      return vjp(reference<>{}, op, {.v = values.view(), .scores = s.view(), .v0 = ground.view()}, c);
    else
      return vjp(reference<>{}, op, {.v = values.view(), .scores = s.view()}, c);
  }
  template <class Normalizer>
  std::vector<double> by_score(Normalizer n, double v0 = 0) const {
    return gradients(n, v0).of(field::scores).values;
  }
};

bool close(std::vector<double> const& a, std::vector<double> const& b, double tolerance = 1e-15) {
  if (a.size() != b.size()) return false;
  for (std::size_t n = 0; n < a.size(); ++n)
    if (!(std::fabs(a[n] - b[n]) <= tolerance)) return false;
  return true;
}

/// The textbook softmax gradient on the first `kept` keys.
std::vector<double> softmax_gradient(std::vector<double> const& s, std::vector<double> const& h, std::size_t kept) {
  double z = 0, mean = 0;
  for (std::size_t j = 0; j < kept; ++j) z += std::exp(s[j]);
  for (std::size_t j = 0; j < kept; ++j) mean += std::exp(s[j]) / z * h[j];
  std::vector<double> g(s.size(), 0.0);
  for (std::size_t j = 0; j < kept; ++j) g[j] = std::exp(s[j]) / z * (h[j] - mean);
  return g;
}

}  // namespace

TEST_SUITE("kinks and ties") {
  TEST_CASE("a logit exactly at gamma counts as above") {
    scored_row const x{{0.5, 0.5, -1, 2}, {1, -2, 3, 0.5}, 0.75};
    double const gamma = 0.5, v0 = 0.25;
    double z = 0, r = 0;
    for (double const a : x.scores) z += std::exp(std::fmax(gamma, a));
    for (std::size_t j = 0; j < 4; ++j) r += std::exp(x.scores[j]) / z * (x.v[j] - v0);
    std::vector<double> expected;
    for (std::size_t j = 0; j < 4; ++j) {
      double const w = std::exp(x.scores[j]) / z;
      expected.push_back(w * (x.v[j] - v0) + (x.scores[j] >= gamma ? w * (x.by_lse - r) : 0));
    }
    CHECK(close(x.by_score(normalizer::grounded{gamma}, v0), expected));
    double const below = std::exp(gamma) / z;  // one key
    CHECK(close(x.gradients(normalizer::grounded{gamma}, v0).parameter("gamma").values, {below * (x.by_lse - r)}));
  }
  TEST_CASE("linear clipping has derivative 0 at -5 and 5, 1/10 between") {
    dense const scores({1, 1, 4, 2}, {0, 1, 0, 1, 0, 1, 0, 1}), v({1, 1, 2, 1}, {1, 3}), out({1, 1, 4, 1}, 1.0);
    dense const x({1, 1, 4, 1}, {-5, 5, 4.75, 6});
    auto const op = attention(
        kernel::given_scores{},
        normalizer::affine<>{
            .alpha = projection{.x = x.view(), .weight = {}, .bias = {}, .activation = activation::linear_clipping},
            .average = 1.0});
    auto const g = vjp(reference<>{}, op, {.v = v.view(), .scores = scores.view()}, {.out = out.view()});
    CHECK(g.projected("alpha").x.values[0] == 0);
    CHECK(g.projected("alpha").x.values[1] == 0);
    double const p = 1 / (1 + std::exp(-1.0));
    CHECK(std::fabs(g.projected("alpha").x.values[2] - ((1 - p) * 1 + p * 3 - 2) / 10) < 1e-15);
    CHECK(g.projected("alpha").x.values[3] == 0);
  }
  TEST_CASE("a logit exactly on the sparse threshold is outside the support") {
    CHECK(scored_row{{1, 0}, {2, 7}}.by_score(normalizer::sparsemax{}) == std::vector<double>{0, 0});
    CHECK(close(scored_row{{0.5, 0.5, 0}, {2, 7, 100}}.by_score(normalizer::sparsemax{}), {-2.5, 2.5, 0}));
    CHECK(scored_row{{2, 0}, {2, 7}}.by_score(normalizer::entmax15{}) == std::vector<double>{0, 0});
    CHECK(scored_row{{0.5, -0.5}, {2, 7}}.by_score(normalizer::entmax{2.0}) == std::vector<double>{0, 0});
    CHECK(scored_row{{0.25, -0.25}, {2, 7}}.by_score(normalizer::entmax{3.0}) == std::vector<double>{0, 0});
    // A little inside both have a derivative.
    CHECK(close(scored_row{{1, 0x1p-20}, {2, 7}}.by_score(normalizer::sparsemax{}), {-2.5, 2.5}));
  }
  TEST_CASE("ReLU has derivative 0 at 0") {
    scored_row const x{{0, 1, -1}, {2, 3, 4}};
    CHECK(x.by_score(normalizer::relu{}) == std::vector<double>{0, 3, 0});
    CHECK(close(x.by_score(normalizer::mean_relu{}), {0, 1, 0}));
    CHECK(close(x.by_score(normalizer::centered_relu{}), {0, (3.0 - 3.0) / 3, 0}));
    scored_row const y{{0, 1, 3}, {2, 3, 4}};
    CHECK(close(y.by_score(normalizer::normalized_relu{}), {0, (3 - 3.75) / 4, (4 - 3.75) / 4}));
    CHECK(scored_row{{0, 0}, {2, 3}}.by_score(normalizer::normalized_relu{}) == std::vector<double>{0, 0});
  }
  TEST_CASE("the Laplacian kernel has derivative 0 where query and key meet") {
    dense const q({1, 1, 1, 1}, 0.5), k({1, 1, 3, 1}, {0.5, 1, -1}), v({1, 1, 3, 1}, {1, 5, -2}),
        out({1, 1, 1, 1}, 1.0);
    auto const g = vjp(reference<>{}, attention(kernel::scalar_laplacian{1.0}),
                       {.v = v.view(), .sort_q = q.view(), .sort_k = k.view()}, {.out = out.view()});
    CHECK(g.of(field::sort_k).values[0] == 0);
    std::vector<double> const ds = softmax_gradient({0, -0.5, -1.5}, {1, 5, -2}, 3);
    CHECK(close(g.of(field::sort_k).values, {0, -ds[1], ds[2]}));
    CHECK(close(g.of(field::sort_q).values, {ds[1] - ds[2]}));
  }
  TEST_CASE("extremes that several keys share pass their gradient to the first") {
    using normalizer::adjusted_ends;
    using normalizer::adjusted_form;
    scored_row const x{{0.5, 2, -1, 2, -1}, {1, -2, 3, 0.5, 4}};
    double z = 0, through_low = 0, through_high = 0, mean = 0;
    std::array<double, 5> p{}, f{};
    for (std::size_t j = 0; j < 5; ++j) z += std::exp(x.scores[j]);
    for (std::size_t j = 0; j < 5; ++j) {
      p[j] = std::exp(x.scores[j]) / z;
      f[j] = (x.scores[j] + 1) / 3;
      mean += p[j] * x.v[j] * f[j];
      through_low += x.v[j] * p[j] * (x.scores[j] - 2) / 9;
      through_high -= x.v[j] * p[j] * (x.scores[j] + 1) / 9;
    }
    std::vector<double> detached, expected;
    for (std::size_t j = 0; j < 5; ++j) detached.push_back(x.v[j] * p[j] / 3 + p[j] * (x.v[j] * f[j] - mean));
    expected = detached;
    expected[1] += through_high;
    expected[2] += through_low;
    CHECK(close(x.by_score(normalizer::self_adjusted<adjusted_form::full_range>{}), expected, 4e-15));
    CHECK(close(x.by_score(normalizer::self_adjusted<adjusted_form::with_zero>{}), expected, 4e-15));
    CHECK(close(x.by_score(normalizer::self_adjusted<adjusted_form::full_range, adjusted_ends::detached>{}), detached,
                4e-15));
    // 0 is an end of form with_zero where all logits are above: it is no key's.
    scored_row const above{{0.5, 2, 1}, {1, -2, 3}};
    double const e = std::exp(0.5) + std::exp(2.0) + std::exp(1.0);
    double all = 0;
    for (std::size_t j = 0; j < 3; ++j) all += std::exp(above.scores[j]) / e * above.v[j] * above.scores[j] / 2;
    double const first = std::exp(0.5) / e;
    CHECK(std::fabs(above.by_score(normalizer::self_adjusted<adjusted_form::with_zero>{})[0] -
                    (first * 1 / 2 + first * (0.25 - all))) < 1e-15);
    // Range 0: no weight, no gradient.
    CHECK(scored_row{{1, 1}, {1, 2}}.by_score(normalizer::self_adjusted<adjusted_form::full_range>{}) ==
          std::vector<double>{0, 0});
    CHECK(scored_row{{0, 0}, {1, 2}}.by_score(normalizer::self_adjusted<adjusted_form::with_zero>{}) ==
          std::vector<double>{0, 0});
  }
  TEST_CASE("top-k: ties at the k-th go to the lower index, and so do gradients") {
    scored_row const x{{1, 1, 1, 1}, {2, 5, 100, 3}};
    CHECK(close(x.by_score(normalizer::top_k{2}), softmax_gradient(x.scores, x.v, 2)));
    scored_row const y{{2, 1, 1, 1}, {2, 5, 100, 3}};
    CHECK(close(y.by_score(normalizer::top_k{3}), softmax_gradient(y.scores, y.v, 3), 1e-14));
    CHECK(y.gradients(normalizer::top_k{3}).of(field::v).values[3] == 0);
  }
  TEST_CASE("equal logits: sparse weights share equally, gradients are those of the shared support") {
    scored_row const x{{1, 1, 1}, {3, 6, 0}};
    CHECK(close(x.by_score(normalizer::sparsemax{}), {0, 3, -3}));
    CHECK(close(x.by_score(normalizer::entmax{2.0}), {0, 3, -3}, 4e-15));
    CHECK(close(x.by_score(normalizer::entmax{1.0}), {0, 1, -1}));
    // entmax 1.5: u = sqrt(1/3)
    CHECK(close(x.by_score(normalizer::entmax15{}), {0, std::sqrt(3.0), -std::sqrt(3.0)}, 4e-15));
  }
  TEST_CASE("entmax at alpha = 1 has a derivative by alpha: (h_j log p_j - p_j sum h log p) / 2, h = -p log p") {
    scored_row const x{{1, -0.5, 0.25}, {2, -1, 4}};
    double z = 0, cross = 0, expected = 0;
    for (double const s : x.scores) z += std::exp(s);
    auto const log_p = [&](std::size_t j) { return x.scores[j] - std::log(z); };
    for (std::size_t j = 0; j < 3; ++j) cross -= std::exp(log_p(j)) * log_p(j) * log_p(j);
    for (std::size_t j = 0; j < 3; ++j) expected += x.v[j] * std::exp(log_p(j)) * (-log_p(j) * log_p(j) - cross) / 2;
    CHECK(std::fabs(expected) > 0.1);
    CHECK(close(x.gradients(normalizer::entmax{1.0}).parameter("alpha").values, {expected}, 1e-14));
    CHECK(close(x.gradients(normalizer::entmax{1 + 0x1p-30}).parameter("alpha").values, {expected}, 1e-8));
  }
  TEST_CASE("yarn: extension 1 still belongs to the constant factor") {
    dense const s({1, 1, 1, 2}, {0, 1}), v({1, 1, 2, 1}, {1, 3}), out({1, 1, 1, 1}, 1.0);
    auto const by_extension = [&](double e) {
      return vjp(reference<>{}, attention(kernel::given_scores{}, length_scale::yarn{e}),
                 {.v = v.view(), .scores = s.view()}, {.out = out.view()})
          .parameter("extension")
          .values[0];
    };
    CHECK(by_extension(0.5) == 0);
    CHECK(by_extension(1) == 0);
    double const p = 1 / (1 + std::exp(-1.0));
    CHECK(std::fabs(by_extension(1 + 0x1p-30) - 2 * p * (1 - p) * 0.2) < 1e-8);
  }
}
