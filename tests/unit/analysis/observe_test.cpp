// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Readings from queries, keys and values: against statistics of the same operator, by hand, and step by step into a
// monitor.
#include <algorithm>
#include <cmath>

#include <support/random.hpp>
#include <unit/check.hpp>

// [snippet: includes]
#include <attune/analysis/observe.hpp>
// [/snippet]
#include <attune/operators/presets.hpp>
#include <attune/policies/mask/causal.hpp>
#include <attune/policies/normalizer/affine.hpp>

using namespace attune;
using namespace attune::analysis;
using attune::test::error_of;
using attune::test::near;

namespace {

using numbers_t = std::vector<double>;

numbers_t normals(std::uint64_t seed, index_t n, double scale = 1) {
  test::rng draw(seed);
  numbers_t x;
  for (index_t i = 0; i < n; ++i) x.push_back(scale * draw.normal());
  return x;
}

}  // namespace

TEST_CASE("observing all rows is what the operator's statistics say: batches, grouped keys and values") {
  index_t const batch = 2, heads = 4, length = 7, width = 3;
  numbers_t const q = normals(1, batch * heads * length * width), k = normals(2, batch * 2 * length * width),
                  v = normals(3, batch * length * width);
  tensor<double const> const Q(q.data(), {batch, heads, length, width}), K(k.data(), {batch, 2, length, width}),
      V(v.data(), {batch, 1, length, width});
  auto const op = sink_attention(0.5);
  auto const readings = observe(op, {.q = Q, .k = K, .v = V}, {.rows = 0, .selected = 2});
  auto const dense = forward(reference<double>{}, op, {.q = Q, .k = K, .v = V});
  auto const means = head_means(statistics(dense));
  REQUIRE(readings.size() == 4);
  for (std::size_t h = 0; h < 4; ++h) {
    head_reading const expected = reading_of(means[h], double(length));
    CHECK(near(readings[h].entropy, expected.entropy, 1e-13));
    CHECK(near(readings[h].sink_share, expected.sink_share, 1e-13));
    double share = 0;
    for (index_t b = 0; b < batch; ++b)
      for (index_t i = 0; i < length; ++i) {
        numbers_t w;
        for (index_t j = 0; j < length; ++j) w.push_back(dense.at(b, index_t(h)).weights(i, j));
        share += separable_share(
                     w,
                     points<double>(std::span<double const>(v.data() + b * length * width, std::size_t(length * width)),
                                    width),
                     2) /
                 14;
      }
    CHECK(near(readings[h].separable, share, 1e-13));
  }
}

TEST_CASE("the temperature of logits of deviation sigma is 1 / sigma") {
  numbers_t const q(1, 1), k{101, 99, 101, 99}, v{1, 2, 3, 4};  // logits 100 +- 1
  auto const at = [&](double scale) {
    numbers_t const larger(1, scale * q[0]);
    return observe(softmax_attention(), {.q = tensor<double const>(larger.data(), {1, 1, 1, 1}),
                                         .k = tensor<double const>(k.data(), {1, 1, 4, 1}),
                                         .v = tensor<double const>(v.data(), {1, 1, 4, 1})})
        .front();
  };
  CHECK(near(at(1).temperature, 1, 1e-12));
  CHECK(near(at(20).temperature, 0.05, 1e-12));
  CHECK(near(at(1).sink_share, std::exp(1.0) / (2 * std::exp(1.0) + 2 * std::exp(-1.0))));
  CHECK(std::isnan(at(1).separable));  // four keys, N = 10
}

TEST_CASE("a causal mask: every row by the keys it sees; a row of one key has no entropy and no deviation") {
  numbers_t const zero(4, 0.0), v{1, 2, 3, 4};
  tensor<double const> const Z(zero.data(), {1, 1, 4, 1}), V(v.data(), {1, 1, 4, 1});
  auto const all =
      observe(softmax_attention(mask::causal{}), {.q = Z, .k = Z, .v = V}, {.rows = 0, .selected = 1}).front();
  CHECK(near(all.entropy, 1));                                  // uniform over 2, 3 and 4 keys
  CHECK(near(all.sink_share, (1 + 0.5 + 1.0 / 3 + 0.25) / 4));  // the first key's share
  CHECK(all.temperature == test::inf);                          // equal logits: no temperature is too low
  auto const last = observe(softmax_attention(mask::causal{}), {.q = Z, .k = Z, .v = V}, {.rows = 1}).front();
  CHECK(near(last.sink_share, 0.25));  // the last query, not the first
}

TEST_CASE("weights below 0 have no entropy, and the monitor says nothing about it") {
  numbers_t const q(1, 1), k{9, 0, 0}, v{1, 2, 3};
  auto const op = attention(kernel::dot_product{}, normalizer::affine<>{1.0, 0.5});
  auto const reading = observe(op, {.q = tensor<double const>(q.data(), {1, 1, 1, 1}),
                                    .k = tensor<double const>(k.data(), {1, 1, 3, 1}),
                                    .v = tensor<double const>(v.data(), {1, 1, 3, 1})})
                           .front();
  CHECK(std::isnan(reading.entropy));
  monitor watch(1);
  watch.step({reading});
  for (warning const& w : watch.warnings()) CHECK(w.what != guideline::entropy_collapse);
}

TEST_CASE("a monitor fed with queries, keys and values of a decoder, token by token: a head that collapses is named") {
  index_t const heads = 2, width = 4, most = 60;
  numbers_t const keys = normals(5, heads * most * width), values = normals(6, heads * most * width);
  numbers_t q = normals(7, heads * width);
  auto const op = softmax_attention();
  monitor watch(heads);
  index_t first_warning = 0, collapses = 0;
  for (index_t length = 20; length <= most; ++length) {
    for (index_t d = 0; d < width; ++d) q[std::size_t(width + d)] *= 1.1;  // head 1 sharpens, head 0 does not
    tensor<double const> const Q(q.data(), {1, heads, 1, width});
    tensor<double const> const K(keys.data(), {1, heads, length, width}, {0, most * width, width, 1});
    tensor<double const> const V(values.data(), {1, heads, length, width}, {0, most * width, width, 1});
    std::vector<index_t> collapsed;
    // [snippet: monitor]
    watch.step(analysis::observe(op, {.q = Q, .k = K, .v = V}, {.selected = 4}));  // a reading per head
    for (analysis::warning const& w : watch.warnings())
      if (w.what == analysis::guideline::entropy_collapse) collapsed.push_back(w.head);
    // [/snippet]
    for (index_t h : collapsed) CHECK(h == 1);
    if (first_warning == 0 && !collapsed.empty()) first_warning = length;
    collapses += index_t(collapsed.size());
  }
  CHECK(watch.steps() == 41);
  CHECK(first_warning > 20);  // not from the start
  CHECK(first_warning < most);
  CHECK(collapses > 10);  // a new key may tie with the best one and end it for a while
  auto const named = [&](guideline g, index_t head) {
    return std::any_of(watch.warnings().begin(), watch.warnings().end(),
                       [&](warning const& w) { return w.what == g && w.head == head; });
  };
  CHECK(named(guideline::temperature, 1));
  CHECK(!named(guideline::temperature, 0));
}

TEST_CASE("bad requests are named") {
  numbers_t const x(1, 1.0);
  tensor<double const> const X(x.data(), {1, 1, 1, 1});
  CHECK(error_of([&] {
          observe(softmax_attention(), {.q = X, .k = X, .v = X}, {.rows = -1});
        }).find("rows has the value -1") != std::string::npos);
  CHECK(error_of([&] {
          observe(softmax_attention(), {.q = X, .k = X, .v = X}, {.selected = 0});
        }).find("selected has the value 0") != std::string::npos);
}
