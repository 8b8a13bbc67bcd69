// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>

#include "../../support/one_call.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

constexpr index_t heads = 3, queries = 5, keys = 9, width = 4, value_width = 3;

one_call data() { return {heads, queries, keys, width, value_width}; }
std::vector<double> const sinks{0.5, -1, 2};

auto windowed(parameter sink) { return sink_attention(sink, mask::causal_window{4}); }
auto sorted() { return attention(kernel::scalar_sort{0.5}, normalizer::sparsemax{}, mask::causal{}); }

TEST_CASE("mixture: each head is what its own operator makes of it, on both executors") {
  one_call const d = data();
  std::vector<index_t> const which{1, 0, 1};
  auto const first = windowed(per_head(sinks));
  auto const op = mixture(which, first, sorted());
  static_assert(!op.has_lse && op.has_ground_weight && op.has_threshold);

  std::vector<double> out(std::size_t(heads * queries * value_width)), w0(std::size_t(heads * queries)), threshold(w0);
  auto const in = d.of<tensor<double const>>(op);
  forward(cpu<double>{2}, op, in,
          {.out = tensor<double>(out, shape{1, heads, queries, value_width}),
           .ground_weight = tensor<double>(w0, shape{1, heads, queries, 1}),
           .threshold = tensor<double>(threshold, shape{1, heads, queries, 1})});
  auto const dense = forward(reference<double>{}, op, d.of<any_tensor>(op));
  auto const all = d.of<any_tensor>(op);
  auto const middle = forward(reference<double>{}, first, {.q = all.q, .k = all.k, .v = all.v});
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < queries; ++i) {
      auto const row = std::size_t(h * queries + i);
      for (index_t c = 0; c < value_width; ++c) {
        CHECK(near(out[row * std::size_t(value_width) + std::size_t(c)], dense.at(0, h).out(i, c)));
        if (h == 1) CHECK(dense.at(0, h).out(i, c) == middle.at(0, h).out(i, c));
      }
      if (h == 1) {
        CHECK(near(w0[row], middle.at(0, h).ground_weight(i)));
        CHECK(std::isnan(threshold[row]));
      } else {
        CHECK(w0[row] == 0);
        CHECK(near(threshold[row], dense.at(0, h).threshold(i)));
      }
    }
}

TEST_CASE("mixture: gradients are those of each operator over its own heads") {
  one_call const d = data();
  std::vector<index_t> const which{1, 0, 1};
  auto const first = windowed(per_head(sinks));
  auto const op = mixture(which, first, sorted());
  auto const in = d.of<any_tensor>(op);
  any_tensor const by_out = tensor<double const>(d.by_out, shape{1, heads, queries, value_width});
  auto const g = vjp(reference<double>{}, op, in, {.out = by_out});
  auto const own = vjp(reference<double>{}, first, {.q = in.q, .k = in.k, .v = in.v}, {.out = by_out});
  for (index_t h = 0; h < heads; ++h) {
    double const expected = h == 1 ? own.parameter("logit")(0, h, 0, 0) : 0;
    CHECK(g.parameter("0.normalizer.logit")(0, h, 0, 0) == expected);
    for (index_t i = 0; i < queries; ++i) {
      CHECK(g.of(field::q)(0, h, i, 0) == (h == 1 ? own.of(field::q)(0, h, i, 0) : 0));
      if (h == 1) CHECK(g.of(field::sort_q)(0, h, i, 0) == 0);
    }
  }
  CHECK(g.of(field::sort_q)(0, 0, 4, 0) != 0);

  // The CPU executor: the same numbers under the same names.
  auto const fused = vjp(cpu<double>(2), op, d.of<tensor<double const>>(op),
                         {.out = tensor<double const>(d.by_out, shape{1, heads, queries, value_width})});
  for (std::size_t f = 0; f < g.fields.size(); ++f) {
    REQUIRE(fused.fields[f].values.size() == g.fields[f].values.size());
    for (std::size_t n = 0; n < g.fields[f].values.size(); ++n)
      CHECK(fused.fields[f].values[n] == doctest::Approx(g.fields[f].values[n]).epsilon(1e-13).scale(1));
  }
  REQUIRE(fused.parameters.size() == g.parameters.size());
  for (std::size_t p = 0; p < g.parameters.size(); ++p) {
    CHECK(fused.parameters[p].path == g.parameters[p].path);
    for (std::size_t n = 0; n < g.parameters[p].values.values.size(); ++n)
      CHECK(fused.parameters[p].values.values[n] ==
            doctest::Approx(g.parameters[p].values.values[n]).epsilon(1e-13).scale(1));
  }
}

TEST_CASE("mixture: what is wrong is named") {
  one_call const d = data();
  std::vector<index_t> const bad{0, 2, 1}, short_list{0, 1};
  CHECK(error_of([&] { mixture(bad, sorted(), sorted()); }) ==
        "attune::mixture: which has the number 2; expected numbers of the 2 operators, counted from 0");
  auto const op = mixture(short_list, windowed(0.5), sorted());
  CHECK(error_of([&] { forward(reference<double>{}, op, d.of<any_tensor>(op)); }) ==
        "attune::forward: which has 2 entries; expected 3, one per head");
}

}  // namespace
}  // namespace attune::test
