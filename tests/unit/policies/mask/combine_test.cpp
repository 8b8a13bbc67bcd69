// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <random>
#include <vector>

#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/combine.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/mask/padding.hpp>
#include <attune/policies/mask/predicate.hpp>
#include <attune/policies/mask/runtime.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>

#include "rules.hpp"

namespace attune::test {
namespace {

TEST_CASE("by hand: 1 query at position 9 of 10 keys") {
  mask_row const r{0, 0, 0, 9, 1, 10};
  auto const ends = mask::sink_window{2, 3};   // 0 1 . . . . . 7 8 9
  auto const recent = mask::causal_window{8};  // . . 2 3 4 5 6 7 8 9
  CHECK(mask::count(ends, r) == 5);
  CHECK(mask::count(ends & recent, r) == 3);
  CHECK(mask::next(ends & recent, r, 0) == key_interval{7, 10});
  CHECK(mask::count(ends | recent, r) == 10);
  CHECK(mask::next(ends | recent, r, 0) == key_interval{0, 10});  // 0 1 and 2 ... 9 touch: one interval
  CHECK(mask::count(mask::none{} & ends, r) == 5);
}

TEST_CASE("masks of positions: both, one of them, nested") {
  auto const even = [](mask_row const&, index_t j) { return j % 2 == 0; };
  auto const third = [](mask_row const& r, index_t j) { return (r.query + j) % 3 != 1; };
  auto const near_by = [](mask_row const& r, index_t j) { return std::abs(r.position - j) <= 2; };
  auto const past = [](mask_row const& r, index_t j) { return j <= r.position; };
  mask::predicate const e(even);
  mask::predicate const t(third);
  follows(mask::causal{} & mask::window{2}, [=](auto const& r, index_t j) { return past(r, j) && near_by(r, j); });
  follows(mask::causal{} | mask::window{2}, [=](auto const& r, index_t j) { return past(r, j) || near_by(r, j); });
  follows(e & t, [=](auto const& r, index_t j) { return even(r, j) && third(r, j); });
  follows(e | t, [=](auto const& r, index_t j) { return even(r, j) || third(r, j); });
  follows((e | mask::window{2}) & (t | mask::causal{}),
          [=](auto const& r, index_t j) { return (even(r, j) || near_by(r, j)) && (third(r, j) || past(r, j)); });
  follows((e & mask::causal{}) | (t & mask::window{2}) | (e & t), [=](auto const& r, index_t j) {
    return (even(r, j) && past(r, j)) || (third(r, j) && near_by(r, j)) || (even(r, j) && third(r, j));
  });
  follows(e & mask::none{}, even);
}

TEST_CASE("random tables: intersections and unions of whatever they are") {
  std::mt19937 random(20260101);
  for (int n = 0; n < 100; ++n) {
    index_t const queries = 1 + index_t(random() % 4), keys = 1 + index_t(random() % 20);
    std::vector<unsigned char> tables[3];
    mask::runtime m[3];
    for (int t = 0; t < 3; ++t) {
      auto const density = 1 + random() % 5;
      for (index_t x = 0; x < queries * keys; ++x) tables[t].push_back(random() % 6 < density);
      m[t].visible = tables[t].data();
      m[t].visible_shape = {1, 1, queries, keys};
    }
    auto const in = [&](int t, mask_row const& r, index_t j) {
      return tables[t][std::size_t(r.query * keys + j)] != 0;
    };
    mask_shape const s{1, 1, queries, keys};
    CHECK(call_differs(m[0] & m[1], [&](auto const& r, index_t j) { return in(0, r, j) && in(1, r, j); }, s) == "");
    CHECK(call_differs(m[0] | m[1], [&](auto const& r, index_t j) { return in(0, r, j) || in(1, r, j); }, s) == "");
    CHECK(call_differs(
              m[0] & (m[1] | m[2]),
              [&](auto const& r, index_t j) { return in(0, r, j) && (in(1, r, j) || in(2, r, j)); }, s) == "");
    CHECK(call_differs((m[0] & m[1]) | m[2],
                       [&](auto const& r, index_t j) { return (in(0, r, j) && in(1, r, j)) || in(2, r, j); }, s) == "");
  }
}

TEST_CASE("check: reaches every part of a combination") {
  std::vector<index_t> const lengths{9};
  mask_shape const s{1, 1, 4, 4};
  std::string const too_long = "attune::mask::padding: lengths[0] has the value 9; expected a number in [0, 4]";
  std::string const no_window = "attune::mask::window: radius has the value -1; expected at least 0";
  CHECK(rejects(mask::causal{} & mask::padding(lengths), s) == too_long);
  CHECK(rejects(mask::padding(lengths) | mask::causal{}, s) == too_long);
  CHECK(rejects(mask::causal{} | (mask::none{} & mask::window{-1}), s) == no_window);
  CHECK(rejects(mask::causal{} | mask::window{1}, s) == "");
}

}  // namespace
}  // namespace attune::test
