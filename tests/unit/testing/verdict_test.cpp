// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The verdict passes correct kernels and names what was planted. `full`: 1,000 random problems and the table of all
// mutations.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <attune/attune.hpp>
#include <attune/reference.hpp>
#include <attune/testing/probes.hpp>
#include <attune/testing/verdict.hpp>

#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::precision;
using certify::storage;
using testing::candidate;
using testing::judgement;
using testing::problem_extents;
using testing::verdict;
using testing::verdict_options;
using testing::verdict_report;

planted_parameters const numbers;

auto sink_operator() {
  return attention(kernel::dot_product{}, length_scale::ssmax{numbers.c, numbers.d}, normalizer::sink{numbers.t},
                   mask::causal{});
}
using op_type = decltype(sink_operator());
using drawn = testing::drawn_problem<op_type>;

problem_extents const usual{
    .heads = 4, .queries = 24, .keys = 40, .width = 32, .value_width = 16, .key_heads = 2, .value_heads = 2};

struct judged {
  verdict_report report;
  bool by_usual_rule;  ///< caught by: error at most twice that of a same-precision reference
};

judged judge(drawn const& p, mutation const& m, storage s, precision how, bool with_lse) {
  auto const op = sink_operator();
  shape e = p.of(field::q).extents;
  e.feature = p.of(field::v).extents.feature;
  planted_result const got = run_planted(p, numbers, m, s, false);
  candidate given = as_stored(s, got.out, e);
  shape const rows{e.batch, e.head, e.position, 1};
  if (with_lse) given.with_lse(natural_lse(tensor<float const>(got.lse, rows)));
  verdict_options options;
  options.how = how;
  auto const in = p.inputs<any_tensor>();
  mutation same;  // what the field compares with: everything in the format of the output
  same.weights = same.logits = s;
  planted_result const naive = run_planted(p, numbers, same, s, false);
  auto const exact = forward(reference<double>{}, op, in);
  double error = 0, usual_error = 0;
  std::size_t n = 0;
  for (auto const& head : exact.heads)
    for (index_t i = 0; i < e.position; ++i)
      for (index_t d = 0; d < e.feature; ++d, ++n) {
        double const x = std::fabs(double(got.out[n]) - head.out(i, d));
        if (!(x <= error) && !std::isnan(error)) error = x;
        usual_error = std::fmax(usual_error, std::fabs(double(naive.out[n]) - head.out(i, d)));
      }
  return {verdict(op, in, given, options), !(error <= 2 * usual_error + 1e-6)};
}

TEST_SUITE_BEGIN("verdict");

TEST_CASE("correct kernels pass, in every storage type and order of summation") {
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    testing::detail::normal_numbers random(seed);
    drawn const p(usual, random);
    for (storage s : {storage::fp32, storage::fp16, storage::bf16})
      for (mutation m : correct_variants()) {
        if (s != storage::fp32 && seed != 2) m.weights = s;
        judged const j = judge(p, m, s, precision(s), true);
        INFO(printed(j.report));
        CHECK(j.report.decision == judgement::pass);
      }
  }
}

TEST_CASE("planted defects fail, and are named") {
  testing::detail::normal_numbers random(7);
  drawn const p(usual, random);
  for (planted_mutation const& m : sink_mutations()) {
    judged const j = judge(p, m.how, storage::fp32, precision(storage::fp32), true);
    INFO(std::string(m.what.name) << '\n' << printed(j.report));
    CHECK(j.report.decision == judgement::fail);
    if (std::string(m.what.cause) != "") CHECK(names(j.report, m.what.cause));
  }
}

TEST_CASE("the numbers of a verdict: how far the scale is off, and that the field's rule does not see it") {
  testing::detail::normal_numbers random(8);
  drawn const p(usual, random);
  mutation m;
  m.scale = 1.005;
  judged const j = judge(p, m, storage::bf16, precision(storage::bf16), false);
  INFO(printed(j.report));
  REQUIRE(j.report.cause() != nullptr);
  CHECK(j.report.cause()->name == "kernel.scale");
  CHECK(near(j.report.cause()->estimate, 0.005, 0.2));
  CHECK(!j.by_usual_rule);
}

TEST_CASE(
    "one element beyond its bound is proved wrong, whatever its place; within it, a size that rounding never has is "
    "FAIL on statistical grounds") {
  testing::detail::normal_numbers random(6);
  drawn const p(usual, random);
  auto const op = sink_operator();
  auto const in = p.inputs<any_tensor>();
  precision how(storage::fp32);
  how.lse_roundings = testing::verdict_options{}.lse_roundings;
  auto const bounds = certify::error_bound(op, in, how);
  shape const e{1, 4, 24, 16}, rows{1, 4, 24, 1};
  auto const judged_with = [&](std::size_t out_at, double out_by, std::size_t lse_at, double lse_by,
                               bool proved_only = false) {
    std::vector<double> out, lse;
    for (auto const& x : bounds.out) out.push_back(x.value);
    for (auto const& x : bounds.lse) lse.push_back(x.value);
    out[out_at] += out_by * bounds.out[out_at].bound;
    lse[lse_at] += lse_by * bounds.lse[lse_at].bound;
    candidate given(tensor<double const>(out, e), storage::fp32);
    given.with_lse(natural_lse(tensor<double const>(lse, rows)));
    return verdict(op, in, given, {.how = precision(storage::fp32), .proved_only = proved_only});
  };
  for (std::size_t at : {std::size_t(0), std::size_t(777), bounds.out.size() - 1}) {
    CHECK(judged_with(at, 0.99, 5, -0.99, true).decision == judgement::pass);
    verdict_report const large = judged_with(at, 0.99, 5, -0.99);
    CHECK(large.decision == judgement::fail);
    CHECK(large.ground == testing::failure_ground::statistical);
    CHECK(large.false_alarms < 1e-4);
    CHECK(judged_with(at, 0.02, 5, -0.02).decision == judgement::pass);
    verdict_report const r = judged_with(at, -1.01, 0, 0);
    CHECK(r.decision == judgement::fail);
    CHECK(r.ground == testing::failure_ground::proved);
    CHECK(r.elements[0].outside == 1);
    CHECK(r.elements[0].ratios[at] > 1);
    CHECK(judged_with(at, 0, at / 16, 1.01).decision == judgement::fail);
  }
}

TEST_CASE("what is demanded and cannot be seen is undecidable, an unknown demand an error, misuse an error") {
  testing::detail::normal_numbers random(9);
  drawn const p(usual, random);
  auto const op = sink_operator();
  auto const in = p.inputs<any_tensor>();
  planted_result const got = run_planted(p, numbers, {}, storage::bf16, false);
  shape const e{1, 4, 24, 16};
  candidate const given = as_stored(storage::bf16, got.out, e);
  verdict_options options;
  options.must_detect = {{"kernel.scale", 1e-7}};
  verdict_report const r = verdict(op, in, given, options);
  CHECK(r.decision == judgement::undecidable);
  CHECK(r.reasons.at(0).find("run the probes") != std::string::npos);
  options.must_detect = {{"kernel.scale", 0.05}, {"sink or ground ignored"}};
  CHECK(verdict(op, in, given, options).decision == judgement::pass);
  options.must_detect = {{"skale"}};
  CHECK(error_of([&] { verdict(op, in, given, options); }).find("\"skale\"") != std::string::npos);
  candidate const narrow = as_stored(storage::bf16, std::vector<float>(4 * 24 * 15), {1, 4, 24, 15});
  CHECK(error_of([&] { verdict(op, in, narrow); }).find("(1, 4, 24, 15)") != std::string::npos);
}

TEST_CASE("probes: every one passes a correct kernel; hidden NaN is there only where keys are hidden") {
  auto const op = sink_operator();
  problem_extents small = usual;
  small.queries = 9, small.keys = 20;
  auto const pack = testing::probe_pack(op, small);
  CHECK(pack.size() == 15);
  CHECK(testing::probe_pack(op, small, 1, true).size() ==
        15);  // a causal mask aligned bottom-right hides no key from everybody
  for (auto const& probe : pack) {
    judged const j = judge(probe->problem, {}, storage::bf16, precision(storage::bf16), true);
    INFO(probe->name << '\n' << printed(j.report));
    CHECK(j.report.decision == judgement::pass);
  }
  small.offset = 2;                                    // keys 11 to 19 are nobody's
  CHECK(testing::probe_pack(op, small).size() == 15);  // kernels need not promise it
  CHECK(testing::contract_of_probe("random").empty());
  CHECK(testing::contract_of_probe("hidden NaN").find("no query sees") != std::string::npos);
  auto const hidden = testing::probe_pack(op, small, 1, true);
  CHECK(hidden.size() == 16);
  for (auto const& probe : hidden) {
    CHECK(std::isnan(probe->problem.of(field::v).floats.back()) == (probe->name == "hidden NaN"));
    CHECK(!std::isnan(probe->problem.of(field::v).floats.front()));
  }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("full verdict");

int count_from(char const* name, int otherwise) {
  char const* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

TEST_CASE("correct kernels pass in at least 999 of 1,000 random problems") {
  auto const op = sink_operator();
  int const count = count_from("ATTUNE_VERDICT_COUNT", 1000);
  int failed = 0;
  for (int n = 0; n < count; ++n) {
    testing::detail::normal_numbers random(std::uint64_t(1000 + n));
    problem_extents e;
    e.heads = 4;
    e.key_heads = index_t(1) << random.below(3);
    e.value_heads = index_t(1) << random.below(3);
    e.queries = 1 + random.below(40);
    e.keys = e.queries + random.below(60);
    e.width = 1 + random.below(48);
    e.value_width = 1 + random.below(24);
    double const spread = std::exp2(double(random.below(6)) - 2);
    drawn const p(e, random, [&](field f, double x) { return f == field::q ? spread * x : x; });
    storage const s = n % 3 == 0 ? storage::fp32 : n % 3 == 1 ? storage::fp16 : storage::bf16;
    verdict_report r;
    if (n % 4 == 3) {  // attune's own CPU, fp32 or rounded once to 16 bits
      std::vector<float> out(std::size_t(e.heads * e.queries * e.value_width)), lse(std::size_t(e.heads * e.queries));
      shape const x{1, e.heads, e.queries, e.value_width}, rows{1, e.heads, e.queries, 1};
      forward(cpu<float>{1}, op, p.inputs<tensor<float const>>(),
              {.out = tensor<float>(out, x), .lse = natural_lse(tensor<float>(lse, rows))});
      candidate given = as_stored(s, out, x);
      given.with_lse(natural_lse(tensor<float const>(lse, rows)));
      r = verdict(op, p.inputs<any_tensor>(), given, {.how = precision(s, storage::fp32, storage::fp32)});
    } else {
      mutation m = correct_variants()[std::size_t(n % 2)];
      if (n % 8 >= 4) m.weights = s;
      r = judge(p, m, s, precision(s), true).report;
    }
    if (r.decision == judgement::fail) {
      ++failed;
      MESSAGE("case " << n << ", " << std::string(testing::name_of(s)) << '\n' << printed(r));
    }
  }
  MESSAGE(failed << " of " << count << " correct kernels failed");
  CHECK(1000 * failed <= count);
}

TEST_CASE("the table of mutations") {
  struct size {
    char const* name;
    problem_extents e;
  };
  problem_extents large = usual;
  large.queries = 64, large.keys = 256;
  size const sizes[] = {{"24 x 40", usual}, {"64 x 256", large}};
  int planted = 0, caught = 0, usual_caught = 0, named = 0, nameable = 0;
  std::ostringstream table;
  table << "| defect | size | fp32 | fp16 | bf16 |\n|---|---|---|---|---|\n";
  for (planted_mutation const& m : sink_mutations())
    for (size const& z : sizes) {
      table << "| " << m.what.name << " | " << z.name << " |";
      for (storage s : {storage::fp32, storage::fp16, storage::bf16}) {
        testing::detail::normal_numbers random(42);
        drawn const p(z.e, random);
        precision const how = m.what.wide_only ? precision(s, storage::fp32, storage::fp32) : precision(s);
        judged const j = judge(p, m.how, s, how, m.what.needs_lse);
        bool const hit = j.report.decision == judgement::fail, right = hit && names(j.report, m.what.cause);
        bool const nameless = std::string(m.what.cause).empty();
        ++planted;
        caught += hit;
        usual_caught += j.by_usual_rule;
        nameable += hit && !nameless;
        named += right && !nameless;
        table << (hit ? " caught" : " missed") << (hit && !nameless ? (right ? ", named" : ", misnamed") : "")
              << (j.by_usual_rule ? "" : " (2x: missed)") << " |";
        if (hit && !right)
          std::fprintf(stderr, "%s %s %s: %s\n", m.what.name, z.name, testing::name_of(s), j.report.reasons[0].c_str());
      }
      table << '\n';
    }
  std::printf("%s\n%d planted: %d caught, %d by the 2x rule; %d of %d nameable named\n", table.str().c_str(), planted,
              caught, usual_caught, named, nameable);
  CHECK(10 * named >= 9 * nameable);
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
