// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Long rows, and the names of defects that look like noise or hide in a few keys. The kernels are those of
// tests/verdict.
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/verdict.hpp>

#include "../../verdict/simulated_backward.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using testing::judgement;
using testing::verdict_report;

simulated_problem drawn(simulated_problem p, storage stored, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  auto const fill = [&](std::vector<float>& to, index_t rows) {
    to.resize(std::size_t(rows * p.width));
    for (float& x : to) x = float(rounded_to(stored, normal(random)));
  };
  fill(p.q, p.batch * p.heads * p.queries);
  fill(p.k, p.batch * p.key_heads * p.keys);
  fill(p.v, p.batch * p.key_heads * p.keys);
  return p;
}
shape of_queries(simulated_problem const& p) { return {p.batch, p.heads, p.queries, p.width}; }
shape of_keys(simulated_problem const& p) { return {p.batch, p.key_heads, p.keys, p.width}; }

using op_type = decltype(softmax_attention());
inputs<op_type, any_tensor> inputs_of(simulated_problem const& p) {
  return {.q = tensor<float const>(p.q, of_queries(p)),
          .k = tensor<float const>(p.k, of_keys(p)),
          .v = tensor<float const>(p.v, of_keys(p))};
}
verdict_report judged_result(simulated_problem const& p, kernel_kind const& kind, simulated_result const& got) {
  std::vector<double> const out(got.out.begin(), got.out.end());
  testing::candidate given(tensor<double const>(out, of_queries(p)), kind.stored);
  given.with_lse(natural_lse(tensor<float const>(got.lse, {p.batch, p.heads, p.queries, 1})));
  return testing::verdict(softmax_attention(), inputs_of(p), given,
                          {.how = certify::precision(kind.stored, storage::fp32, kind.weights)});
}
verdict_report judged(simulated_problem const& p, kernel_kind const& kind, planted const& d = {}) {
  return judged_result(p, kind, run(p, kind, d));
}
verdict_report judged_backward(simulated_problem const& p, backward_kind const& kind, planted_backward const& d = {},
                               bool with_scale = false) {
  std::vector<float> const dout = drawn(p, kind.stored, 99).q;
  simulated_gradients const got = run_backward(p, dout, kind, d);
  testing::gradient_candidate given;
  auto const give = [&](field f, std::vector<float> const& x, shape const& e) {
    std::vector<double> const y(x.begin(), x.end());
    given.with(f, tensor<double const>(y, e), kind.stored);
  };
  give(field::q, got.dq, of_queries(p));
  give(field::k, got.dk, of_keys(p));
  give(field::v, got.dv, of_keys(p));
  double scale = 0;  // s = scale <q, k>: its gradient is <dq, q> / scale
  for (std::size_t n = 0; n < got.dq.size(); ++n) scale += double(got.dq[n]) * p.q[n] * std::sqrt(double(p.width));
  std::vector<float> const of_scale{float(scale)};
  op_type op = softmax_attention();
  if (with_scale) op.kernel.scale = 1 / std::sqrt(double(p.width));  // a given number has a gradient
  if (with_scale) given.with("kernel.scale", tensor<float const>(of_scale, {1, 1, 1, 1}));
  cotangents<op_type, any_tensor> const by{.out = tensor<float const>(dout, of_queries(p))};
  return testing::gradient_verdict(op, inputs_of(p), by, given,
                                   {.how = certify::precision(kind.stored, storage::fp32, kind.products)});
}
std::string printed(verdict_report const& r) {
  std::ostringstream text;
  text << r;
  return text.str();
}
std::string name_of_cause(verdict_report const& r) { return r.cause() == nullptr ? "" : r.cause()->name; }

TEST_SUITE_BEGIN("verdict names");

TEST_CASE("a residual that lies in few numbers has no name: one number of the lse") {
  simulated_problem const p =
      drawn({.batch = 2, .heads = 4, .key_heads = 2, .queries = 2, .keys = 4099, .width = 16, .causal = false},
            storage::bf16, 5);
  kernel_kind const kind{.stored = storage::bf16, .tile = 64};
  simulated_result got = run(p, kind, {});
  got.lse[5] += 1e-4f;
  verdict_report const r = judged_result(p, kind, got);
  INFO(printed(r));
  CHECK(r.decision == judgement::fail);
  CHECK(r.cause() == nullptr);
  REQUIRE(!r.reasons.empty());
  CHECK(r.reasons[0] == "only the lse is seen to be wrong; no known defect explains it");
}

TEST_CASE("long rows in 16 bits: a correct decode over 131,072 keys is PASS, two lost keys of 8,192 are not") {
  for (storage s : {storage::bf16, storage::fp16}) {
    INFO(std::string(testing::name_of(s)));
    simulated_problem const longest = drawn(
        {.batch = 1, .heads = 1, .key_heads = 1, .queries = 1, .keys = 131072, .width = 16, .causal = false}, s, 1);
    for (kernel_kind const& kind : {kernel_kind{.stored = s, .tile = 128},  // P in fp32; masses, P rounded
                                    kernel_kind{.stored = s, .weights = s, .tile = 128},
                                    kernel_kind{.stored = s, .weights = s, .tile = 128, .divides_first = true}}) {
      verdict_report const right = judged(longest, kind);
      INFO(printed(right));
      CHECK(right.decision == judgement::pass);
    }
    simulated_problem const p =
        drawn({.batch = 1, .heads = 4, .key_heads = 2, .queries = 1, .keys = 8192, .width = 32, .causal = false}, s, 2);
    kernel_kind const kind{.stored = s, .weights = s, .tile = 64};
    CHECK(judged(p, kind).decision == judgement::pass);
    verdict_report const lost = judged(p, kind, {.what = fault::keys_lost, .size = 2});
    INFO(printed(lost));
    CHECK(lost.decision != judgement::pass);
    CHECK(name_of_cause(lost) == "keys missing: 2048..2049");  // from a quarter of the keys on
  }
}

TEST_CASE("a sum in 16 bits, and sums of weights in 16 bits, have their names") {
  simulated_problem const p =
      drawn({.batch = 1, .heads = 4, .key_heads = 2, .queries = 24, .keys = 96, .width = 16, .causal = false},
            storage::fp32, 3);
  kernel_kind const kind{.tile = 16};
  CHECK(judged(p, kind).decision == judgement::pass);
  CHECK(name_of_cause(judged(p, kind, {.what = fault::accumulator_bf16})).find("sums of out rounded") !=
        std::string::npos);
  CHECK(name_of_cause(judged(p, kind, {.what = fault::denominator_fp16})) == "sum of weights rounded to fp16");
}

TEST_CASE("gradients in 16 bits are judged by region: one head with a wrong factor, row terms of the next query") {
  simulated_problem const p =
      drawn({.batch = 2, .heads = 4, .key_heads = 2, .queries = 24, .keys = 40, .width = 16, .causal = false},
            storage::bf16, 4);
  backward_kind const kind{.stored = storage::bf16, .products = storage::bf16, .tile = 16};
  verdict_report const right = judged_backward(p, kind);
  INFO(printed(right));
  CHECK(right.decision == judgement::pass);
  CHECK(right.parts);
  planted const one_head{.where = place::one_head, .size = 0.03, .head = 2};
  verdict_report const late = judged_backward(p, kind, {backward_fault::dq_factor, one_head});
  INFO(printed(late));
  CHECK(late.decision == judgement::fail);
  REQUIRE(!late.reasons.empty());
  CHECK(late.reasons[0].find("in head 2 of dq") != std::string::npos);
  CHECK(name_of_cause(judged_backward(p, kind, {backward_fault::row_term_late, {}})) ==
        "row term <dout, out> of the next query");
  CHECK(name_of_cause(judged_backward(p, kind, {backward_fault::lse_off, {.size = 0.05}})) == "all gradients");
}

/// The first words of a FAIL that explains nearly everything.
std::string cause_of(verdict_report const& r) {
  INFO(printed(r));
  CHECK(r.decision == judgement::fail);
  CHECK(r.share > 0.9);
  return r.cause() == nullptr ? "" : r.cause()->name + (r.cause()->where.empty() ? "" : " " + r.cause()->where);
}

TEST_CASE("mistakes of some rows of a backward pass have their name, and the rows") {
  simulated_problem p =
      drawn({.batch = 1, .heads = 4, .key_heads = 2, .queries = 24, .keys = 40, .width = 16}, storage::fp32, 5);
  p.causal = false;
  backward_kind const kind{.tile = 16};
  CHECK(judged_backward(p, kind).decision == judgement::pass);
  auto const named = [&](backward_fault f, planted const& where = {}) {
    return cause_of(judged_backward(p, kind, {f, where}));
  };
  planted const half{.where = place::half_tile, .tile = 8}, last{.where = place::last_rows},
      one{.where = place::one_head, .head = 2};
  CHECK(named(backward_fault::through_maximum) == "gradient through the maximum");
  CHECK(named(backward_fault::weights_bf16, half) ==
        "probabilities rounded to bf16 in each query i with i mod 8 in 4..7");
  CHECK(named(backward_fault::unnormalized_dv, last) == "dv from weights that are not normalized in queries 21..23");
  CHECK(named(backward_fault::dp_fp16, one) == "dP rounded to fp16 in head 2");
  CHECK(named(backward_fault::next_key_head, last) ==
        "keys and values of the next key head in the backward pass alone in queries 21..23");
  CHECK(named(backward_fault::group_alone, last) == "gradients of one head of each group alone in queries 21..23");
  CHECK(named(backward_fault::dk_factor, {.where = place::last_rows, .size = 0.03}) == "dk in queries 21..23");
  // Nothing is known of what these do to the gradient of a parameter.
  for (auto const& [fault, where] :
       {std::pair{backward_fault::through_maximum, planted{}}, std::pair{backward_fault::dp_fp16, one},
        std::pair{backward_fault::next_key_head, last}})
    CHECK(cause_of(judged_backward(p, kind, {fault, where}, true)) == named(fault, where));
  planted two = one;
  two.size = 2;
  CHECK(named(backward_fault::queries_skipped, two) == "queries skipped in dk and dv: 12..13 in head 2");
  CHECK(named(backward_fault::keys_skipped, {.size = 2}) == "keys skipped in dq: 20..21");
}

TEST_CASE("an lse without its sum is no rounded sum; rows of -inf leave every z finite") {
  simulated_problem const p =
      drawn({.heads = 2, .key_heads = 2, .queries = 12, .keys = 12, .width = 8}, storage::fp32, 5);
  shape const s = of_queries(p), rows{1, 2, 12, 1};
  std::vector<float> out(192), lse(24);
  auto const view = [](std::vector<float> const& x, shape const& e) { return tensor<float const>(x, e); };
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  inputs<std::remove_cvref_t<decltype(op)>, tensor<float const>> in{
      .q = view(p.q, s), .k = view(p.k, s), .v = view(p.v, s)};
  auto const run = [&] { forward(cpu{}, op, in, {.out = tensor(out, s), .lse = natural_lse(tensor(lse, rows))}); };
  auto const judge = [&] {
    return testing::verdict(op, {.q = in.q, .k = in.k, .v = in.v},
                            testing::candidate(view(out, s)).with_lse(natural_lse(view(lse, rows))));
  };
  run();
  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 12; ++i) {
      float& to = lse[std::size_t(h * 12 + i)];
      to = -std::numeric_limits<float>::infinity();
      for (index_t j = 0; j <= i; ++j) {
        float sum = 0;
        for (index_t d = 0; d < 8; ++d)
          sum += p.q[std::size_t((h * 12 + i) * 8 + d)] * p.k[std::size_t((h * 12 + j) * 8 + d)];
        to = std::fmax(to, sum / std::sqrt(8.f));
      }
    }
  verdict_report const without = judge();
  INFO(printed(without));
  CHECK(without.decision == judgement::fail);
  REQUIRE(without.cause() != nullptr);
  CHECK(without.cause()->name == "largest logit instead of lse");

  in.offset = -1;  // query 0 sees no key
  run();
  verdict_report const shifted = judge();
  INFO(printed(shifted));
  REQUIRE(shifted.cause() != nullptr);
  CHECK(shifted.cause()->name == "mask shifted by -1");
  for (auto const& f : shifted.findings) CHECK_FALSE(std::isnan(f.z));
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
