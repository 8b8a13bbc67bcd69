// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The words of a report: the smallest wrong part, parts of zeros, two defects, what is closest and what is excluded.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../../support/float_kernel.hpp"
#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::storage;
using testing::verdict_report;

std::string words(std::vector<bool> const& has) {
  return testing::detail::words_of_indices({"query", "queries", "i"}, has);
}
template <class Holds>
std::vector<bool> where(std::size_t n, Holds const& holds) {
  std::vector<bool> to(n);
  for (std::size_t i = 0; i < n; ++i) to[i] = holds(i);
  return to;
}

verdict_report judged(kernel_change const& wrong, storage stored = storage::bf16) {
  return float_kernel({6, 96, 96, 32}, stored, 5).judged(wrong);
}
bool says(verdict_report const& r, std::string const& text) {
  return std::any_of(r.reasons.begin(), r.reasons.end(),
                     [&](std::string const& x) { return x.find(text) != std::string::npos; });
}

TEST_SUITE_BEGIN("verdict");

TEST_CASE("sets of indices as text: ranges, residues, numbers") {
  CHECK(words(where(128, [](auto) { return true; })).empty());
  CHECK(words(where(128, [](auto i) { return i == 7; })) == "query 7");
  CHECK(words(where(128, [](auto i) { return i >= 64; })) == "queries 64..127");
  CHECK(words(where(128, [](auto i) { return i % 32 >= 16; })) == "each query i with i mod 32 in 16..31");
  CHECK(words(where(128, [](auto i) { return i % 16 == 15; })) == "each query i with i mod 16 = 15");
  CHECK(words(where(500, [](auto i) { return i * i % 503 < 100; })).find(" of 500 queries") != std::string::npos);
}

TEST_CASE("the smallest wrong part stands in the second line where there is no name") {
  auto const in_box = [](index_t h, index_t i, index_t c) { return h == 5 && i >= 64 && c >= 16 && c < 24; };
  verdict_report const r = judged({.out = [&](index_t h, index_t i, index_t c, float x) {
    return in_box(h, i, c) ? std::fabs(x) + 0.1f * float(c % 3) : x;
  }});
  INFO(printed(r));
  CHECK(r.decision == testing::judgement::fail);
  CHECK(r.region.rfind("wrong only in out, head 5, queries 64..95, features 16..23 (", 0) == 0);
  verdict_report const factor =
      judged({.out = [&](index_t h, index_t i, index_t c, float x) { return in_box(h, i, c) ? -x : x; }});
  INFO(printed(factor));
  REQUIRE(factor.cause() != nullptr);
  CHECK(factor.cause()->where == "in head 5, queries 64..95, features 16..23");
  verdict_report const odd =
      judged({.lse = 0, .out = [](index_t, index_t, index_t c, float x) { return c % 2 == 1 ? -x : x; }});
  INFO(printed(odd));
  CHECK(odd.region.rfind("wrong only in each feature d with d mod 2 = 1 (", 0) == 0);
}

TEST_CASE("one wrong element: its place, what is excluded, and no name") {
  verdict_report const r = judged({.lse = 0, .out = [](index_t h, index_t i, index_t c, float x) {
                                     return h == 5 && i == 70 && c == 9 ? x + 1 : x;
                                   }});
  INFO(printed(r));
  CHECK(r.cause() == nullptr);
  CHECK(r.reasons.at(0) == "wrong only in head 5, query 70, feature 9 (1 element); no known defect explains it");
  CHECK(says(r, "excluded: "));
  CHECK(std::find(r.excluded.begin(), r.excluded.end(), "order of axes") != r.excluded.end());
  CHECK(std::find(r.excluded.begin(), r.excluded.end(), "heads") != r.excluded.end());
  CHECK(says(r, "out[batch 0, head 5, query 70, feature 9] = "));
}

TEST_CASE("zeros and NaN are called that") {
  auto const head = [](float value) {
    return [=](index_t h, index_t, index_t, float x) { return h == 3 ? value : x; };
  };
  CHECK(judged({.lse = 0, .out = head(0)}).reasons.at(0) == "head 3 of out is all zeros; no known defect explains it");
  CHECK(judged({.lse = 0, .out = head(NAN)}).reasons.at(0) == "head 3 of out is all NaN; no known defect explains it");
  CHECK(judged({.lse = 0, .out = [](index_t, index_t, index_t c, float x) { return c >= 16 ? 0 : x; }}).observation ==
        "features 16..31 of out are all zeros");
}

TEST_CASE("two defects: each is named with the output that it explains, or beside a part of zeros") {
  verdict_report const two = judged({.scale = 1.01f, .lse = 1.4426950408889634});
  INFO(printed(two));
  CHECK(says(two, "behaves as if kernel.scale were +"));
  CHECK(says(two, " % of out, "));
  CHECK(says(two, "behaves as if: lse in base 2 (explains 100 % of lse, sure)"));
  verdict_report const zeros =
      judged({.scale = 1.01f, .out = [](index_t h, index_t, index_t, float x) { return h == 3 ? 0 : x; }});
  INFO(printed(zeros));
  CHECK(says(zeros, "head 3 of out is all zeros"));
  CHECK(says(zeros, "behaves as if kernel.scale were +1"));
}

TEST_CASE("of two reports, the one with a whole cause tells more than one with a part or none") {
  verdict_report const named = judged({.later = 1}), pass = judged({}),
                       unnamed = judged({.lse = 0, .out = [](index_t h, index_t i, index_t c, float x) {
                                           return h == 5 && i == 70 && c == 9 ? x + 1 : x;
                                         }});
  CHECK(pass.decision == testing::judgement::pass);
  CHECK(testing::tells_more(named, unnamed));
  CHECK(!testing::tells_more(unnamed, named));
  CHECK(testing::tells_more(unnamed, pass));
}

TEST_CASE("a parameter at the end of the search is no measurement; weights print as ranges of keys") {
  testing::finding f;
  f.name = "kernel.map.cap";
  f.parameter = f.relative = true;
  f.estimate = 53.6;
  CHECK(f.words() == "behaves as if kernel.map.cap were many times too large");
  CHECK(f.amount(4.9e14, false) == "more than 10 times its value");
  std::vector<double> off(64, 0.01);
  for (std::size_t n = 8; n < 16; ++n) off[n] = -1;
  off[20] = 0.4;
  CHECK(testing::detail::words_of_weights(off) == "keys 8..15 -100 %, 20 +40 %");
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
