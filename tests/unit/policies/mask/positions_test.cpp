// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Masks that are rules of positions.
#include <limits>

#include <attune/policies/mask/causal.hpp>
#include <attune/policies/mask/none.hpp>
#include <attune/policies/mask/predicate.hpp>
#include <attune/policies/mask/prefix.hpp>
#include <attune/policies/mask/sink_window.hpp>
#include <attune/policies/mask/sliding_window.hpp>

#include "rules.hpp"

namespace attune::test {
namespace {

/// r.position is i + offset.
index_t distance(mask_row const& r, index_t j) { return r.position - j; }

TEST_CASE("mask by hand: 3 queries over 5 keys, aligned bottom-right") {
  mask_row const r{0, 0, 1, 3, 3, 5};  // query 1 is at position 1 + (5 - 3)
  CHECK(mask::next(mask::causal{}, r, 0) == key_interval{0, 4});
  CHECK(mask::count(mask::causal{}, r) == 4);
  CHECK(mask::count(mask::causal_window{2}, r) == 2);
  CHECK(mask::count(mask::window{1}, r) == 3);
  CHECK(mask::count(mask::sink_window{1, 2}, r) == 3);
  CHECK(mask::next(mask::sink_window{1, 2}, r, 1) == key_interval{2, 4});
  CHECK(mask::count(mask::none{}, r) == 5);
}

TEST_CASE("windows: the widest there is means no limit") {
  index_t const widest = std::numeric_limits<index_t>::max();
  for (index_t position : {-5, 0, 3, 9}) {
    mask_row const r{0, 0, 0, position, 4, 4};
    CHECK(mask::count(mask::window{widest}, r) == 4);
    CHECK(mask::count(mask::causal_window{widest}, r) == mask::count(mask::causal{}, r));
    CHECK(mask::count(mask::sink_window{1, widest}, r) == mask::count(mask::causal{}, r));
  }
}

TEST_CASE("none: every key") {
  follows(mask::none{}, [](mask_row const&, index_t) { return true; });
}

TEST_CASE("causal: j <= i + offset") {
  follows(mask::causal{}, [](mask_row const& r, index_t j) { return j <= r.position; });
}

TEST_CASE("causal_window: 0 <= i + offset - j < width") {
  for (index_t width : {1, 2, 4, 100})
    follows(mask::causal_window{width},
            [=](mask_row const& r, index_t j) { return 0 <= distance(r, j) && distance(r, j) < width; });
}

TEST_CASE("window: |i + offset - j| <= radius") {
  for (index_t radius : {0, 1, 3, 100})
    follows(mask::window{radius},
            [=](mask_row const& r, index_t j) { return -radius <= distance(r, j) && distance(r, j) <= radius; });
}

TEST_CASE("prefix: j < length or j <= i + offset") {
  for (index_t length : {0, 1, 4, 100})
    follows(mask::prefix{length}, [=](mask_row const& r, index_t j) { return j < length || j <= r.position; });
}

TEST_CASE("sink_window: (j < sinks or i + offset - j < width) and j <= i + offset") {
  for (index_t sinks : {0, 1, 2, 100})
    for (index_t width : {1, 3, 100})
      follows(mask::sink_window{sinks, width}, [=](mask_row const& r, index_t j) {
        return (j < sinks || distance(r, j) < width) && distance(r, j) >= 0;
      });
}

TEST_CASE("predicate: any rule") {
  auto const rule = [](mask_row const& r, index_t j) { return (r.query + j) % 3 == 0; };
  follows(mask::predicate(rule), rule);
  follows(mask::predicate([](mask_row const&, index_t) { return false; }),
          [](mask_row const&, index_t) { return false; });
}

TEST_CASE("check: sizes that make no window") {
  mask_shape const s{1, 1, 4, 4};
  CHECK(rejects(mask::causal_window{0}, s) ==
        "attune::mask::causal_window: width has the value 0; expected at least 1");
  CHECK(rejects(mask::window{-1}, s) == "attune::mask::window: radius has the value -1; expected at least 0");
  CHECK(rejects(mask::prefix{-2}, s) == "attune::mask::prefix: length has the value -2; expected at least 0");
  std::string const wanted = "; expected sinks >= 0 and width >= 1";
  CHECK(rejects(mask::sink_window{-1, 3}, s) ==
        "attune::mask::sink_window: (sinks, width) has the value (-1, 3)" + wanted);
  CHECK(rejects(mask::sink_window{2, 0}, s) ==
        "attune::mask::sink_window: (sinks, width) has the value (2, 0)" + wanted);
  CHECK(rejects(mask::causal_window{1}, s) == "");
  CHECK(rejects(mask::window{0}, s) == "");
  CHECK(rejects(mask::prefix{9}, s) == "");
  CHECK(rejects(mask::sink_window{0, 1}, s) == "");
  CHECK(rejects(mask::none{}, s) == "");
  CHECK(rejects(mask::causal{}, s) == "");
}

}  // namespace
}  // namespace attune::test
