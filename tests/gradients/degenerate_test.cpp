// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradients of the rows of docs/reference/contracts.md that have nothing, or not enough, to see; what nobody sees is never read.
#include <doctest/doctest.h>

#include <attune/exec/reference/directional.hpp>
#include <attune/policies.hpp>

#include "gradients/dense.hpp"

using namespace attune;
using namespace attune::test;

namespace {

/// One head, two rows of given scores and gates, four keys, behind a margin that takes a row constant out of the
/// logits.
struct degenerate {
  static constexpr index_t queries = 2, keys = 4;
  rng from{5};
  dense scores = dense::random(from, {1, 1, queries, keys}), gates = dense::random(from, {1, 1, queries, keys});
  dense v = dense::random(from, {1, 1, keys, 2}), value_gate = dense::random(from, {1, 1, keys, 2});
  dense v0 = dense::random(from, {1, 1, queries, 2}), output_gate = dense::random(from, {1, 1, queries, 2});
  dense by_out = dense::random(from, {1, 1, queries, 2}), by_lse = dense(shape{1, 1, queries, 1}, {0.75, 0.5}),
        by_ground = dense(shape{1, 1, queries, 1}, {-1.25, 0.25});
  std::vector<unsigned char> visible = std::vector<unsigned char>(queries * keys, 1);

  template <class Normalizer>
  auto op(Normalizer n) const {
    return attention(kernel::given_scores{}, length_scale::margin{.alpha = 0.25, .gamma = 40},
                     gate::given_softplus{0.5}, n, gate::sigmoid_value{}, gate::sigmoid_output{},
                     mask::runtime{.visible = visible.data(), .visible_shape = {1, 1, queries, keys}});
  }
  template <class Normalizer>
  dense_gradients<double> gradients(Normalizer n) const {
    auto const o = op(n);
    using op_type = std::remove_const_t<decltype(o)>;
    cotangents<op_type, any_tensor> c{.out = by_out.view()};
    if constexpr (op_type::has_lse) c.lse = by_lse.view();
    if constexpr (op_type::has_ground_weight) c.ground_weight = by_ground.view();
    if constexpr (op_type::uses(field::v0))
      return vjp(reference<>{}, o,
                 {.v = v.view(),
                  .scores = scores.view(),
                  .gates = gates.view(),
                  .value_gate = value_gate.view(),
                  .output_gate = output_gate.view(),
                  .v0 = v0.view()},
                 c);
    else
      return vjp(reference<>{}, o,
                 {.v = v.view(),
                  .scores = scores.view(),
                  .gates = gates.view(),
                  .value_gate = value_gate.view(),
                  .output_gate = output_gate.view()},
                 c);
  }
  double gate_at(index_t i, index_t d) const { return 1 / (1 + std::exp(-output_gate.view()(0, 0, i, d))); }
};

/// What of row 0 is not 0.
struct expected_row {
  bool ground_value = false;    ///< dv0 = do behind the output gate, and the output gate's own gradient
  char const* level = nullptr;  ///< the parameter whose gradient is dlse
};

/// Row 1 sees nothing in these tests, so that all there is comes from row 0, which is the degenerate one as well.
template <class Normalizer>
void check_dead_rows(degenerate const& x, std::string const& name, Normalizer n, expected_row const& expected,
                     double rounding = 0) {
  CAPTURE(name);
  auto const g = x.gradients(n);
  for (field const f : {field::scores, field::gates, field::v, field::value_gate})
    for (double const d : g.of(f).values) CHECK(d == 0);
  for (index_t i = 0; i < x.queries; ++i)
    for (index_t d = 0; d < 2; ++d) {
      CAPTURE(i);
      double const by_out = x.by_out.view()(0, 0, i, d), gate = x.gate_at(i, d);
      if (g.of(field::v0).extents.size() > 0) {
        double const dv0 = expected.ground_value ? by_out * gate : 0;
        CHECK(std::fabs(g.of(field::v0)(0, 0, i, d) - dv0) <= 1e-15 * std::fabs(dv0));
      }
      double const dgate = expected.ground_value ? by_out * x.v0.view()(0, 0, i, d) * gate * (1 - gate) : 0;
      CHECK(std::fabs(g.of(field::output_gate)(0, 0, i, d) - dgate) <= 1e-15 * std::fabs(dgate));
    }
  for (auto const& p : g.parameters) {
    CAPTURE(p.path);
    double const by_level = expected.level != nullptr && p.path == expected.level ? 0.75 + 0.5 : 0;
    CHECK(std::fabs(p.values.values[0] - by_level) <= rounding);
  }
}

/// Every normalizer; `without` says what a row without any visible key, or with all logits -inf, is to it.
template <class Check>
void for_each_normalizer(Check const& check) {
  using namespace normalizer;
  check("softmax", softmax{}, expected_row{});
  check("off by one", off_by_one{}, expected_row{});
  check("valued off by one", valued_off_by_one{}, expected_row{true});
  check("sink", sink{0.5}, expected_row{false, "normalizer.logit"});
  check("valued sink", valued_sink{0.5}, expected_row{true, "normalizer.logit"});
  check("affine", affine<>{.alpha = 0.75, .average = 0.5}, expected_row{});
  check("affine of all", affine<affine_count::total>{.alpha = 0.75, .average = 0.5}, expected_row{});
  check("free affine", free_affine<>{.alpha = 0.75, .beta = 0.5}, expected_row{});
  check("sigmoid", sigmoid{}, expected_row{});
  check("sigmoid with a bias", sigmoid{0.5}, expected_row{});
  check("product", self_adjusted<adjusted_form::product>{}, expected_row{});
  check("with zero", self_adjusted<adjusted_form::with_zero>{}, expected_row{});
  check("full range", self_adjusted<adjusted_form::full_range>{}, expected_row{});
  check("detached", self_adjusted<adjusted_form::full_range, adjusted_ends::detached>{}, expected_row{});
  check("sparsemax", sparsemax{}, expected_row{});
  check("entmax 1.5", entmax15{}, expected_row{});
  check("entmax", entmax{1.0}, expected_row{});
  check("entmax", entmax{2.5}, expected_row{});
  check("top-k", top_k{2}, expected_row{});
  check("exponential", exponential{}, expected_row{});
  check("mean ReLU", mean_relu{}, expected_row{});
  check("normalized ReLU", normalized_relu{}, expected_row{});
  check("centered ReLU", centered_relu{}, expected_row{});
  check("exponentials over their sum", generic<map::exponential>{}, expected_row{});
}

bool finite(dense_gradients<double> const& g) {
  bool yes = true;
  auto const look = [&](std::vector<double> const& values) {
    for (double const x : values) yes = yes && std::isfinite(x);
  };
  for (auto const& f : g.fields) look(f.values);
  for (auto const& p : g.parameters) look(p.values.values);
  return yes;
}
bool equal(dense_gradients<double> const& a, dense_gradients<double> const& b) {
  bool yes = true;
  for (std::size_t f = 0; f < a.fields.size(); ++f) yes = yes && a.fields[f].values == b.fields[f].values;
  for (std::size_t p = 0; p < a.parameters.size(); ++p)
    yes = yes && a.parameters[p].values.values == b.parameters[p].values.values;
  return yes;
}

}  // namespace

TEST_SUITE("degenerate rows") {
  TEST_CASE("no visible key") {
    degenerate x;
    x.visible.assign(x.visible.size(), 0);
    for (double& s : x.scores.values) s = not_a_number;
    for (double& s : x.v.values) s = not_a_number;
    for_each_normalizer(
        [&](std::string const& name, auto n, expected_row const& e) { check_dead_rows(x, name, n, e); });
    for (double const gamma : {0.5, -inf, inf, 1e300}) {
      CAPTURE(gamma);
      check_dead_rows(x, "grounded", normalizer::grounded{gamma}, {true});
    }
  }
  TEST_CASE("all logits -inf") {
    degenerate x;
    for (double& s : x.scores.values) s = -inf;
    for_each_normalizer(
        [&](std::string const& name, auto n, expected_row const& e) { check_dead_rows(x, name, n, e); });
    // Finite gamma: the keys earned nothing.  lse = gamma + log K, w0 = 1, out = v0.
    check_dead_rows(x, "grounded", normalizer::grounded{0.5}, {true, "normalizer.gamma"}, 1e-14);
    check_dead_rows(x, "grounded, gamma = -inf", normalizer::grounded{-inf}, {});
  }
  TEST_CASE("an lse of -inf does not move, whatever the row constant does") {
    degenerate x;
    for (double& s : x.scores.values) s = -inf;
    auto const op = x.op(normalizer::softmax{});
    auto const r = jvp(reference<>{}, op,
                       {.v = any_tensor(x.v.view()),
                        .scores = any_tensor(x.scores.view()),
                        .gates = any_tensor(x.gates.view()),
                        .value_gate = any_tensor(x.value_gate.view()),
                        .output_gate = any_tensor(x.output_gate.view())},
                       {.parameters = {{"length_scale.gamma", 1.0}}});
    CHECK(r.heads[0].lse(0).value == -inf);
    CHECK(r.heads[0].lse(0).tangent[0] == 0);
  }
  TEST_CASE("all logits -inf by the gate") {
    degenerate x;
    for (double& g : x.gates.values) g = -inf;
    check_dead_rows(x, "softmax", normalizer::softmax{}, {});
    check_dead_rows(x, "sink", normalizer::sink{0.5}, {false, "normalizer.logit"});
    check_dead_rows(x, "grounded", normalizer::grounded{0.5}, {true, "normalizer.gamma"}, 1e-14);
    check_dead_rows(x, "sparsemax", normalizer::sparsemax{}, {});
  }
  TEST_CASE("some logits -inf: their gradient is exactly 0, all others are finite") {
    degenerate x;
    x.scores.values[1] = x.scores.values[4 + 2] = x.gates.values[4 + 3] = -inf;
    auto const check = [&](std::string const& name, auto n, expected_row const&) {
      CAPTURE(name);
      auto const g = x.gradients(n);
      CHECK(finite(g));
      for (field const f : {field::scores, field::gates})
        for (std::size_t const slot : {1u, 4u + 2u, 4u + 3u}) CHECK(g.of(f).values[slot] == 0);
    };
    for_each_normalizer(check);
    check("grounded", normalizer::grounded{0.5}, {});
    check("grounded", normalizer::grounded{-inf}, {});
    check("sink", normalizer::sink{-inf}, {});
  }
  TEST_CASE("NaN or +inf at a visible key: NaN for that row, exactly what it was for the other") {
    degenerate const clean;
    for (double const bad : {not_a_number, inf}) {
      degenerate x;
      x.scores.values[1] = bad;
      auto const check = [&](std::string const& name, auto n) {
        CAPTURE(name);
        auto const g = x.gradients(n), was = clean.gradients(n);
        for (std::size_t const slot : {0u, 2u}) CHECK(std::isnan(g.of(field::scores).values[slot]));
        for (double const d : g.of(field::v).values) CHECK(std::isnan(d));  // both rows pull at every value
        for (std::size_t const slot : {4u, 5u, 6u, 7u})
          CHECK(g.of(field::scores).values[slot] == was.of(field::scores).values[slot]);
      };
      using namespace normalizer;
      check("softmax", softmax{});
      check("sink", sink{0.5});
      check("affine", affine<>{.alpha = 0.75, .average = 0.5});
      check("with zero", self_adjusted<adjusted_form::with_zero>{});
      check("sparsemax", sparsemax{});
      check("entmax 1.5", entmax15{});
      check("entmax", entmax{2.5});
      check("top-k", top_k{2});
    }
  }
  TEST_CASE("a prior of 0 has gradient exactly 0") {
    dense const q({1, 1, 1, 1}, 1.0), k({1, 1, 3, 1}, {0.5, 1, -1}), v({1, 1, 3, 1}, {1, 5, -2}),
        one({1, 1, 1, 1}, 1.0);
    dense const prior({1, 1, 1, 3}, {0.5, 0, 2});
    auto const g = vjp(
        reference<>{},
        attention(kernel::dot_product{1.0} + kernel::log_prior{}, length_scale::margin{.alpha = 0.5, .gamma = 40}),
        {.q = q.view(), .k = k.view(), .v = v.view(), .bias = prior.view()}, {.out = one.view(), .lse = one.view()});
    CHECK(finite(g));
    CHECK(g.of(field::bias).values[1] == 0);
    CHECK(g.of(field::k).values[1] == 0);
    CHECK(std::fabs(g.of(field::bias).values[0]) > 0.01);
  }
  TEST_CASE("infinite levels") {
    degenerate const x;
    auto const ground = x.gradients(normalizer::grounded{inf}), sink = x.gradients(normalizer::valued_sink{inf});
    for (field const f : {field::scores, field::gates, field::v}) {
      for (double const d : ground.of(f).values) CHECK(d == 0);
      for (double const d : sink.of(f).values) CHECK(d == 0);
    }
    CHECK(std::fabs(ground.of(field::v0)(0, 0, 0, 1) - x.by_out.values[1] * x.gate_at(0, 1)) < 1e-15);
    CHECK(finite(sink));
    CHECK(finite(ground));
    // gamma = -inf and a sink of -inf: the gradients of softmax.
    auto const softmax = x.gradients(normalizer::softmax{}), none = x.gradients(normalizer::grounded{-inf}),
               off = x.gradients(normalizer::sink{-inf});
    for (std::size_t n = 0; n < 8; ++n) {
      CHECK(std::fabs(none.of(field::scores).values[n] - softmax.of(field::scores).values[n]) < 1e-15);
      CHECK(std::fabs(off.of(field::scores).values[n] - softmax.of(field::scores).values[n]) < 1e-15);
    }
    CHECK(none.parameter("normalizer.gamma").values[0] == 0);
    CHECK(off.parameter("logit").values[0] == 0);
  }
}

TEST_SUITE("what nobody sees") {
  TEST_CASE("NaN and infinity in invisible slots reach no gradient") {
    degenerate zero;
    for (std::size_t i = 0; i < 2; ++i) zero.visible[4 * i + 2] = 0;  // key 2
    zero.visible[1] = 0;                                              // and key 1 for query 0
    degenerate garbage = zero;
    for (double const bad : {not_a_number, inf, -inf}) {
      for (std::size_t const slot : {1u, 2u, 6u}) garbage.scores.values[slot] = garbage.gates.values[slot] = bad;
      for (std::size_t const slot : {4u, 5u}) garbage.v.values[slot] = garbage.value_gate.values[slot] = bad;
      auto const check = [&](std::string const& name, auto n, expected_row const&) {
        CAPTURE(name);
        auto const clean = zero.gradients(n), g = garbage.gradients(n);
        CHECK(finite(clean));
        CHECK(equal(clean, g));
        for (std::size_t const slot : {1u, 2u, 6u}) CHECK(g.of(field::scores).values[slot] == 0);
        for (std::size_t const slot : {4u, 5u}) CHECK(g.of(field::v).values[slot] == 0);
      };
      for_each_normalizer(check);
      check("grounded", normalizer::grounded{0.5}, {});
    }
  }
  TEST_CASE("NaN in keys, priors and sorted positions that are not visible") {
    dense const q({1, 1, 1, 2}, {1, 0.5}), v({1, 1, 3, 1}, {1, not_a_number, -2}), one({1, 1, 1, 1}, 1.0);
    dense const k({1, 1, 3, 2}, {0.5, 1, not_a_number, inf, -1, 0.25}), prior({1, 1, 1, 3}, {0.5, not_a_number, 2});
    dense const sort_q({1, 1, 1, 1}, 0.5), sort_k({1, 1, 3, 1}, {0.25, not_a_number, 1});
    std::vector<unsigned char> const visible{1, 0, 1};
    auto const g = vjp(reference<>{},
                       attention(kernel::rbf{1.0} + kernel::log_prior{} + kernel::scalar_sort{1.0},
                                 mask::runtime{.visible = visible.data(), .visible_shape = {1, 1, 1, 3}}),
                       {.q = q.view(),
                        .k = k.view(),
                        .v = v.view(),
                        .sort_q = sort_q.view(),
                        .sort_k = sort_k.view(),
                        .bias = prior.view()},
                       {.out = one.view(), .lse = one.view()});
    CHECK(finite(g));
    CHECK(g.of(field::k).values[2] == 0);
    CHECK(g.of(field::bias).values[1] == 0);
  }
  TEST_CASE("values outside the support of a candidate set are never read") {
    degenerate x;
    x.scores = dense(shape{1, 1, 2, 4}, {3, 2.75, -9, -9, 3, 2.5, -9, -9});
    x.gates = dense(shape{1, 1, 2, 4}, 0.0);
    for (std::size_t const slot : {4u, 5u, 6u, 7u}) x.v.values[slot] = x.value_gate.values[slot] = not_a_number;
    CHECK(finite(x.gradients(normalizer::sparsemax{})));
    CHECK(finite(x.gradients(normalizer::entmax15{})));
    CHECK(finite(x.gradients(normalizer::entmax{1.75})));
    CHECK(finite(x.gradients(normalizer::top_k{2})));
    CHECK(!finite(x.gradients(normalizer::softmax{})));
  }
}
