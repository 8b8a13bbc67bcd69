// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The verdict on gradients passes correct backward passes and names what was planted. `full`: random problems and the
// table.
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/probes.hpp>

#include "../../support/planted.hpp"
#include "../../support/planted_backward.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::storage;
using testing::gradient_candidate;
using testing::gradient_verdict;
using testing::judgement;
using testing::problem_extents;
using testing::verdict_report;

constexpr double sink = 0.5;
auto sink_operator() { return sink_attention(sink, mask::causal{}); }
using op_type = decltype(sink_operator());
using drawn = testing::drawn_problem<op_type>;

problem_extents const usual{
    .heads = 4, .queries = 24, .keys = 40, .width = 32, .value_width = 16, .key_heads = 2, .value_heads = 2};

gradient_candidate as_stored(drawn const& p, planted_gradients const& g, storage s) {
  gradient_candidate given;
  auto const give = [&](field f, std::vector<float> const& x) {
    std::vector<double> y;
    for (float one : x) y.push_back(certify::rounded_to(s, one));
    given.with(f, tensor<double const>(y, p.of(f).extents), s);
  };
  give(field::q, g.q);
  give(field::k, g.k);
  give(field::v, g.v);
  return given;
}
/// The planted kernel knows cotangents of out and lse.
cotangents<op_type, any_tensor> cotangents_of(drawn const& p) {
  auto d = p.cotangents<any_tensor>();
  d.ground_weight = {};
  return d;
}
verdict_report judged(drawn const& p, backward_mutation const& m, storage s) {
  auto const op = sink_operator();
  return gradient_verdict(op, p.inputs<any_tensor>(), cotangents_of(p),
                          as_stored(p, run_planted_backward(p, sink, m, s), s));
}
double worst_share(verdict_report const& r) {
  double worst = 0;
  for (auto const& e : r.elements) worst = std::fmax(worst, e.ratio);
  return worst;
}

TEST_SUITE_BEGIN("gradient verdict");

TEST_CASE("correct backward passes are PASS, in every storage type and order of summation") {
  for (storage s : {storage::fp32, storage::fp16, storage::bf16})
    for (bool reversed : {false, true}) {
      testing::detail::normal_numbers random(3);
      drawn const p(usual, random);
      backward_mutation m;
      m.reversed = reversed;
      verdict_report const r = judged(p, m, s);
      INFO(std::string(testing::name_of(s)) << '\n' << printed(r));
      CHECK(r.decision == judgement::pass);
      CHECK(worst_share(r) > 0.001);  // the bound means something
    }
}

TEST_CASE("planted defects of a backward pass fail, and are named") {
  testing::detail::normal_numbers random(7);
  drawn const p(usual, random);
  for (backward_mutation const& m : backward_mutations()) {
    verdict_report const r = judged(p, m, storage::fp32);
    INFO(std::string(m.name) << '\n' << printed(r));
    CHECK(r.decision == judgement::fail);
    if (std::string(m.cause) != "") CHECK(names(r, m.cause));
  }
}

TEST_CASE("a cotangent that the kernel does not know is named") {
  testing::detail::normal_numbers random(7);
  drawn const p(usual, random);
  auto const op = sink_operator();
  auto const given = as_stored(p, run_planted_backward(p, sink, {}, storage::fp32), storage::fp32);
  verdict_report const r = gradient_verdict(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>(), given);
  INFO(printed(r));
  CHECK(names(r, "gradient without its ground weight term"));
}

TEST_CASE("the numbers: a scale that is off by 0.1 % is measured; one visible key has noise and no gradient") {
  testing::detail::normal_numbers random(8);
  problem_extents square = usual;
  square.keys = square.queries;  // query 0 sees one key: dS is 0 exactly, and rounding in any kernel
  drawn const p(square, random);
  backward_mutation m;
  CHECK(judged(p, m, storage::fp32).decision == judgement::pass);
  m.scale = 1.001;
  verdict_report const r = judged(p, m, storage::fp32);
  INFO(printed(r));
  REQUIRE(r.cause() != nullptr);
  CHECK(r.cause()->name == "kernel.scale");
  CHECK(near(r.cause()->estimate, 0.001, 0.1));
}

TEST_CASE("an operator that reads no k, with shared value heads") {
  auto op = attention(kernel::scalar_laplacian{0.5}, normalizer::softmax{}, mask::causal{});
  testing::detail::normal_numbers random(11);
  testing::drawn_problem<decltype(op)> const p(usual, random);
  dense_gradients<double> const g = vjp(reference<double>{}, op, p.inputs<any_tensor>(), p.cotangents<any_tensor>());
  auto const judged_with_v = [&](double factor) {
    gradient_candidate given;
    for (field f : {field::sort_q, field::sort_k, field::v}) {
      std::vector<double> x = g.of(f).values;
      for (double& one : x) one = certify::rounded_to(storage::fp32, f == field::v ? factor * one : one);
      given.with(f, tensor<double const>(x, g.of(f).extents), storage::fp32);
    }
    return gradient_verdict(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>(), given).decision;
  };
  CHECK(judged_with_v(1) == judgement::pass);
  CHECK(judged_with_v(1.01) == judgement::fail);
}

template <class Op>
verdict_report judged_alone(Op const& op, testing::drawn_problem<Op> const& p, double moved) {
  auto const in = p.template inputs<tensor<float const>>();
  cotangents<Op, tensor<float const>> const d{.out = p.by_out().template view<tensor<float const>>()};
  auto g = vjp(cpu{}, op, in, d);
  gradient_candidate given;
  for (field f : {field::q, field::k, field::v}) {
    auto& x = g.of(f);
    for (float& y : x.values) y *= f == field::k ? float(1 + moved) : 1.f;
    given.with(f, tensor<float const>(x.values, x.extents));
  }
  return gradient_verdict(op, p.template inputs<any_tensor>(), {.out = any_tensor(d.out)}, given);
}

// The worst case of few steps is near what rounding leaves. Before rounding was sampled there, most of these failed.
TEST_CASE("small problems, weights that are not normalized: correct is PASS, dk off by 2e-5 is FAIL") {
  auto const check = [](auto const& op) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      testing::detail::normal_numbers random(seed);
      bool const tiny = seed % 2 == 0;
      testing::drawn_problem<std::remove_cvref_t<decltype(op)>> const p(
          tiny ? problem_extents{.heads = 2, .queries = 1, .keys = 3, .width = 2}
               : problem_extents{.heads = 2, .queries = 3, .keys = 5, .width = 4, .value_width = 6},
          random);
      verdict_report const r = judged_alone(op, p, 0);
      INFO("seed " << seed << '\n' << printed(r));
      CHECK(r.decision == judgement::pass);
      caught += judged_alone(op, p, 2e-5).decision == judgement::fail;
    }
    CHECK(caught == 20);
  };
  check(attention(kernel::dot_product{}, normalizer::sigmoid{}, mask::causal{}));
  check(attention(kernel::dot_product{}, normalizer::relu{}, mask::causal{}));
  check(attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{}));
}

// A rounded probability enters all features of dv: they have its error in common.
TEST_CASE("bf16: probabilities rounded to bf16 in dv are PASS, also where a row of dv has one term") {
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    testing::detail::normal_numbers random(seed);
    testing::drawn_problem<std::remove_cvref_t<decltype(op)>> const p(
        {.heads = 2, .queries = 1, .keys = 20, .width = 8, .value_width = 32, .key_heads = 2, .value_heads = 2},
        random);
    auto const in = p.inputs<any_tensor>();
    any_tensor const d = p.by_out().view<any_tensor>();
    auto const rows = forward(reference<double>{}, op, in);
    auto g = vjp(reference<double>{}, op, in, {.out = d});
    auto& dv = g.of(field::v);
    for (index_t h = 0; h < 2; ++h)
      for (index_t j = 0; j < 20; ++j)
        for (index_t c = 0; c < 32; ++c)
          dv(0, h, j, c) = certify::rounded_to(storage::bf16, rows.at(0, h).weights(0, j)) * d(0, h, 0, c);
    gradient_candidate given;
    for (field f : {field::q, field::k, field::v}) {
      auto& x = g.of(f);
      for (double& y : x.values) y = certify::rounded_to(storage::bf16, y);
      given.with(f, tensor<double const>(x.values, x.extents), storage::bf16);
    }
    verdict_report const r = gradient_verdict(op, in, {.out = d}, given);
    INFO("seed " << seed << '\n' << printed(r));
    CHECK(r.decision != judgement::fail);
  }
}

TEST_CASE("a table that was assigned after the operator was made") {
  std::vector<double> const metric(4, 0.5);
  auto op = attention(kernel::elliptical{tensor<double const>(metric, {1, 1, 1, 4})}, normalizer::softmax{});
  testing::detail::normal_numbers random(2);
  testing::drawn_problem<decltype(op)> const p({.heads = 2, .queries = 3, .keys = 5, .width = 4}, random);
  auto const bound = [&] {
    return certify::gradient_error_bound(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>()).of(field::q)[0].bound;
  };
  double const made = bound();
  op.kernel.metric = tensor<double const>(metric, {1, 1, 1, 4});
  CHECK(bound() == made);
}

TEST_CASE("a kink within reach of rounding: either side is right") {
  auto op = attention(kernel::scalar_difference{}, normalizer::mean_relu{});
  using relu = decltype(op);
  testing::detail::normal_numbers random(1);
  testing::drawn_problem<relu> p({.heads = 1, .queries = 2, .keys = 3, .width = 1, .value_width = 2}, random);
  p.of(field::sort_q).doubles = {1, 3};
  p.of(field::sort_k).doubles = {1, 0, 2};  // query 0 stands on key 0
  p.of(field::sort_q).floats = {1, 3};
  p.of(field::sort_k).floats = {1, 0, 2};
  auto const b = certify::gradient_error_bound(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>());
  CHECK(std::isinf(b.of(field::sort_q)[0].bound));
  CHECK(!std::isinf(b.of(field::sort_q)[1].bound));
  CHECK(std::isinf(b.of(field::sort_k)[0].bound));
  CHECK(!std::isinf(b.of(field::sort_k)[1].bound));
  CHECK(!std::isinf(b.of(field::v)[0].bound));
}

TEST_CASE("weights too small for a float may be 0") {
  auto const op =
      log_n_attention(2.0, mask::causal{});  // the probe "peaked" has weights of 1e-37, with gradients of 1e-35
  double worst = 0;
  for (auto const& probe : testing::probe_pack(
           op,
           {.heads = 4, .queries = 6, .keys = 20, .width = 8, .value_width = 6, .key_heads = 2, .value_heads = 2})) {
    auto const& p = probe->problem;
    auto const g = vjp(cpu<float>{1}, op, p.inputs<tensor<float const>>(), p.cotangents<tensor<float const>>());
    auto const bounds = certify::gradient_error_bound(op, p.inputs<any_tensor>(), p.cotangents<any_tensor>());
    for (field f : {field::q, field::k, field::v})
      for (std::size_t n = 0; n < g.of(f).values.size(); ++n) {
        auto const& b = bounds.of(f)[n];
        worst = std::fmax(worst, std::fabs(double(g.of(f).values[n]) - b.value) / b.bound);
      }
  }
  CHECK(worst <= 1);
}

TEST_CASE("queries without keys have gradients of 0") {
  auto const op = softmax_attention(mask::none{});
  std::vector<double> const q(12, 0.5), d(6, 1), zeros(12, 0), ones(12, 1), none(1);
  inputs<decltype(softmax_attention(mask::none{})), any_tensor> const in{
      .q = any_tensor(tensor<double const>(q, {1, 1, 3, 4})),
      .k = any_tensor(tensor<double const>(none.data(), {1, 1, 0, 4})),
      .v = any_tensor(tensor<double const>(none.data(), {1, 1, 0, 2}))};
  auto const judge = [&](std::vector<double> const& dq) {
    return gradient_verdict(op, in, {.out = any_tensor(tensor<double const>(d, {1, 1, 3, 2}))},
                            gradient_candidate().with(field::q, tensor<double const>(dq, {1, 1, 3, 4}), storage::fp32));
  };
  CHECK(judge(zeros).decision == judgement::pass);
  CHECK(judge(ones).decision == judgement::fail);
}

TEST_CASE("misuse of a gradient verdict is an error in words") {
  testing::detail::normal_numbers random(9);
  drawn const p(usual, random);
  auto const op = sink_operator();
  auto const in = p.inputs<any_tensor>();
  auto const d = p.cotangents<any_tensor>();
  CHECK(error_of([&] { gradient_verdict(op, in, d, {}); }).find("no gradient") != std::string::npos);
  std::vector<float> const x(4 * 24 * 31);
  CHECK(error_of([&] {
          gradient_verdict(op, in, d, gradient_candidate().with(field::q, tensor<float const>(x, {1, 4, 24, 31})));
        }).find("dq has shape (1, 4, 24, 31)") != std::string::npos);
  CHECK(error_of([&] {
          gradient_verdict(op, in, d, gradient_candidate().with(field::gate_q, tensor<float const>(x, {1, 4, 24, 31})));
        }).find("the operator has no such input") != std::string::npos);
  auto sparse = sparsemax_attention();
  using sparse_type = decltype(sparse);
  testing::drawn_problem<sparse_type> const s(usual, random);
  CHECK(error_of([&] {
          certify::gradient_error_bound(sparse, s.inputs<any_tensor>(), s.cotangents<any_tensor>());
        }).find("a candidate set") != std::string::npos);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("full gradient verdict");

TEST_CASE("correct gradients pass in at least 499 of 500 random problems") {
  auto const op = sink_operator();
  int failed = 0;
  double worst[3] = {};
  for (int n = 0; n < 500; ++n) {
    testing::detail::normal_numbers random(std::uint64_t(5000 + n));
    problem_extents e;
    e.heads = 4;
    e.key_heads = index_t(1) << random.below(3);
    e.value_heads = e.key_heads;
    e.queries = 1 + random.below(24);
    e.keys = e.queries + random.below(30);
    e.width = 1 + random.below(32);
    e.value_width = 1 + random.below(24);
    double const spread = std::exp2(double(random.below(5)) - 2);
    drawn const p(e, random, [&](field f, double x) { return f == field::q ? spread * x : x; });
    storage const s = n % 3 == 0 ? storage::fp32 : n % 3 == 1 ? storage::fp16 : storage::bf16;
    verdict_report r;
    if (n % 6 == 3) {  // attune's own CPU
      auto const g = vjp(cpu<float>{1}, op, p.inputs<tensor<float const>>(), p.cotangents<tensor<float const>>());
      auto const all = p.cotangents<any_tensor>();
      gradient_candidate given;
      for (field f : {field::q, field::k, field::v})
        given.with(f, tensor<float const>(g.of(f).values, g.of(f).extents));
      r = gradient_verdict(op, p.inputs<any_tensor>(), all, given);
    } else {
      backward_mutation m;
      m.reversed = n % 2 == 0;
      r = judged(p, m, s);
    }
    worst[n % 3] = std::fmax(worst[n % 3], worst_share(r));
    if (r.decision == judgement::fail) {
      ++failed;
      MESSAGE("case " << n << ", " << std::string(testing::name_of(s)) << '\n' << printed(r));
    }
  }
  MESSAGE(failed << " of 500 failed; largest error / bound: fp32 " << worst[0] << ", fp16 " << worst[1] << ", bf16 "
                 << worst[2]);
  CHECK(failed <= 1);
}

TEST_CASE("the table of mutations of gradients") {
  problem_extents large = usual;
  large.queries = 64, large.keys = 128;
  int caught = 0, named = 0, nameable = 0, planted = 0;
  std::ostringstream table;
  for (backward_mutation const& m : backward_mutations()) {
    table << "| " << m.name << " |";
    for (problem_extents const& e : {usual, large})
      for (storage s : {storage::fp32, storage::fp16, storage::bf16}) {
        testing::detail::normal_numbers random(42);
        drawn const p(e, random);
        verdict_report const r = judged(p, m, s);
        bool const hit = r.decision == judgement::fail, nameless = std::string(m.cause).empty(),
                   right = hit && !nameless && names(r, m.cause);
        ++planted;
        caught += hit;
        nameable += hit && !nameless;
        named += right;
        table << (!hit ? " missed" : right ? " named" : " caught") << " |";
        if (hit && !right && !nameless)
          std::fprintf(stderr, "%s %s: %s\n", m.name, testing::name_of(s), r.reasons[0].c_str());
      }
    table << '\n';
  }
  std::printf("%s%d planted: %d caught; %d of %d nameable named\n", table.str().c_str(), planted, caught, named,
              nameable);
  CHECK(10 * named >= 9 * nameable);
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
