// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <support/within_bounds.hpp>

#include <attune/attune.hpp>
#include <attune/certify/enclosure/enclose.hpp>
#include <attune/certify/error_bound.hpp>
#include <attune/exec/reference/multiprecision.hpp>

namespace {

using namespace attune;
using certify::enclose;
using certify::enclosed_number;
using certify::interval;
using certify::storage;

struct drawn {
  static constexpr index_t queries = 3, keys = 6, width = 5, value_width = 2;
  std::vector<float> q, k, v, d_out;
  drawn() {
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (auto [list, size] : {std::pair{&q, queries * width},
                              {&k, keys * width},
                              {&v, keys * value_width},
                              {&d_out, queries * value_width}})
      for (index_t n = 0; n < size; ++n) list->push_back(normal(random));
  }
  tensor<float const> Q() const { return {q, shape{1, 1, queries, width}}; }
  tensor<float const> K() const { return {k, shape{1, 1, keys, width}}; }
  tensor<float const> V() const { return {v, shape{1, 1, keys, value_width}}; }
  tensor<float const> D() const { return {d_out, shape{1, 1, queries, value_width}}; }
};

/// Rounded results are those of 50 digits, of out, lse, weights and gradients.
template <class Op>
void agree(Op const& op, char const* name) {
  CAPTURE(std::string(name));
  drawn const p;
  auto const exact = forward(reference<digits50>{}, op, {.q = p.Q(), .k = p.K(), .v = p.V()}).at(0, 0);
  auto const e = enclose(op, {.q = p.Q(), .k = p.K(), .v = p.V()}, {}, certify::enclosed_weights::all);
  CHECK(e.undecided() == 0);
  for (index_t i = 0; i < p.queries; ++i) {
    for (index_t d = 0; d < p.value_width; ++d) CHECK(e.at_out(0, 0, i, d).rounded == double(exact.out(i, d)));
    for (index_t j = 0; j < p.keys; ++j) CHECK(e.at_weight(0, 0, i, j).rounded == double(exact.weights(i, j)));
    if constexpr (Op::has_lse) CHECK(e.at_lse(0, 0, i).rounded == double(exact.lse(i)));
    if constexpr (Op::has_threshold) CHECK(e.threshold[std::size_t(i)].rounded == double(exact.threshold(i)));
  }
  auto const gradient = vjp(reference<digits50>{}, op, {.q = p.Q(), .k = p.K(), .v = p.V()}, {.out = p.D()});
  auto const g = certify::enclose_vjp(op, {.q = p.Q(), .k = p.K(), .v = p.V()}, {.out = p.D()});
  for (field const f : {field::q, field::k, field::v})
    for (std::size_t n = 0; n < g.of(f).values.size(); ++n) {
      CHECK(g.of(f).values[n].decided);
      CHECK(g.of(f).values[n].rounded == double(gradient.of(f).values[n]));
    }
  for (std::size_t s = 0; s < g.parameters.size();
       ++s) {  // some cancel completely: 0, of which 50 digits leave a residue
    CHECK(g.parameters[s].values.values[0].decided);
    CHECK(std::fabs(g.parameters[s].values.values[0].rounded - double(gradient.parameters[s].values.values[0])) <=
          1e-45);
  }
}

}  // namespace

TEST_CASE("bits are added until both ends round alike, up to a limit that is said") {
  auto const cancelled = [] {  // 1/3 three times is 1, but no interval knows it
    interval const third = interval(1) / interval(3);
    return std::vector<interval>{third + third + third - interval(1), interval(2)};
  };
  auto const decided = certify::enclosed_by({}, cancelled);
  CHECK(decided[0].decided);
  CHECK(decided[0].rounded == 0);
  CHECK(decided[1].rounded == 2);
  auto const open = certify::enclosed_by({.most_bits = 512}, cancelled);
  CHECK_FALSE(open[0].decided);
  CHECK(open[0].lower <= 0);
  CHECK(open[0].upper >= 0);
  CHECK(open[1].decided);
  CHECK_THROWS_WITH_AS(certify::enclosed_by({.first_bits = 20}, cancelled),
                       doctest::Contains("64 <= first_bits <= most_bits"), attune::error);
}

TEST_CASE("equal keys share the weight exactly, in every format") {
  std::vector<float> const q{1}, k{3, 3}, v{1, 4};
  auto const op = attention(kernel::dot_product{});
  for (storage const s : {storage::fp64, storage::fp32, storage::fp16, storage::bf16}) {
    auto const e = enclose(op,
                           {.q = tensor<float const>(q, shape{1, 1, 1, 1}),
                            .k = tensor<float const>(k, shape{1, 1, 2, 1}),
                            .v = tensor<float const>(v, shape{1, 1, 2, 1})},
                           {.format = s}, certify::enclosed_weights::all);
    CHECK(e.undecided() == 0);
    CHECK(e.at_weight(0, 0, 0, 0).rounded == 0.5);
    CHECK(e.at_out(0, 0, 0, 0).rounded == 2.5);
    CHECK(e.at_lse(0, 0, 0).rounded == certify::rounded_to(s, 3 + std::log(2.)));
  }
}

TEST_CASE("a level at the end of its bracket is found: rows of -inf, and of one key that has all the weight") {
  float const off = -std::numeric_limits<float>::infinity();
  std::vector<float> const q{1}, v{1, 4};
  for (double const alpha : {1.0, 1.125, 1.75}) {
    auto const weights = [&](std::vector<float> const& k) {
      auto const e = enclose(attention(kernel::dot_product{}, normalizer::entmax{alpha}),
                             {.q = tensor<float const>(q, shape{1, 1, 1, 1}),
                              .k = tensor<float const>(k, shape{1, 1, 2, 1}),
                              .v = tensor<float const>(v, shape{1, 1, 2, 1})},
                             {}, certify::enclosed_weights::all);
      CHECK(e.undecided() == 0);
      return std::pair{e.at_weight(0, 0, 0, 0).rounded, e.at_weight(0, 0, 0, 1).rounded};
    };
    CHECK(weights({off, off}) == std::pair{0.0, 0.0});
    CHECK(weights({0, off}) == std::pair{1.0, 0.0});
    CHECK(weights({0, -1e6f}) == std::pair{1.0, 0.0});  // where alpha is 1 the level is 1e-434294
  }
}

TEST_SUITE("full enclosures") {
  TEST_CASE("one operator of each kind: the 50 digits, rounded") {
    agree(attention(kernel::dot_product{}, normalizer::sink{0.25}, mask::causal{}), "sink");
    agree(attention(kernel::dot_product{}, length_scale::margin{0.5, 0.25}, normalizer::affine<>{0.75, 0.5}),
          "margin, affine");
    agree(attention(kernel::dot_product{}, normalizer::sparsemax{}), "sparsemax");
    agree(attention(kernel::dot_product{}, normalizer::entmax{1.25}), "entmax 1.25");
    agree(attention(kernel::dot_product{}, normalizer::entmax{2.75}), "entmax 2.75");
    agree(attention(kernel::dot_product{}, normalizer::top_k{2}), "top 2");
    agree(attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{}),
          "self-adjusted");
  }

  TEST_CASE("a tie that no number of bits decides gives the hull of the gradients on both sides") {
    // Both logits are 3 / sqrt 3, each computed for itself: which of them is the largest, and gets the gradient through
    // the range?
    std::vector<float> const q{1, 1, 1}, k{1, 1, 1, 3, 0, 0, 0, 0, 0}, v{1, 2, 4}, d{1};
    auto const op =
        attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::full_range>{});
    auto const Q = tensor<float const>(q, shape{1, 1, 1, 3}), K = tensor<float const>(k, shape{1, 1, 3, 3});
    auto const V = tensor<float const>(v, shape{1, 1, 3, 1}), D = tensor<float const>(d, shape{1, 1, 1, 1});
    CHECK(enclose(op, {.q = Q, .k = K, .v = V}).undecided() == 0);  // the result is continuous there
    auto const g = certify::enclose_vjp(op, {.q = Q, .k = K, .v = V}, {.out = D}, {.most_bits = 512});
    auto const convention = vjp(reference<double>{}, op, {.q = Q, .k = K, .v = V}, {.out = D});
    int open = 0;
    for (std::size_t n = 0; n < k.size(); ++n) {
      enclosed_number const& x = g.of(field::k).values[n];
      open += x.decided ? 0 : 1;
      CHECK(x.lower <= convention.of(field::k).values[n] + 1e-12);
      CHECK(x.upper >= convention.of(field::k).values[n] - 1e-12);
    }
    CHECK(open > 0);
  }

  TEST_CASE("the CPU keeps its bounds, and a bound that is too small is noticed") {
    drawn const p;
    auto const op = attention(kernel::dot_product{}, normalizer::sink{0.25}, mask::causal{});
    std::vector<float> out(std::size_t(p.queries * p.value_width));
    forward(cpu<float>{}, op, {.q = p.Q(), .k = p.K(), .v = p.V()},
            {.out = tensor<float>(out, shape{1, 1, p.queries, p.value_width})});
    auto const e = enclose(op, {.q = p.Q(), .k = p.K(), .v = p.V()});
    auto b = certify::error_bound(op, {.q = p.Q(), .k = p.K(), .v = p.V()});
    auto const worst = [&] {
      double share = 0;
      for (std::size_t n = 0; n < out.size(); ++n)
        share = std::max(share, certify::used_share(out[n], e.out[n], b.out[n]));
      return share;
    };
    CHECK(worst() > 0);
    CHECK(worst() <= 1);
    for (auto& x : b.out) x.bound /= 1000;  // the planted break
    CHECK(worst() > 1);
    for (auto& x : b.out) x.bound *= 1000;
    out[3] += float(2 * b.out[3].bound);
    CHECK(worst() > 1);
  }
}
