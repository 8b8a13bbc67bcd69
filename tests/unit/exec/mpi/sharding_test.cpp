// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <random>
#include <vector>

#include <attune/exec/mpi/sharding.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using intervals = std::vector<key_interval>;

intervals of_rank(sharding const& s, int rank) {
  auto const x = s.intervals(rank);
  return {x.begin(), x.end()};
}

/// Each position is on the rank and at the place that the intervals say.
void check_places(sharding const& s) {
  std::vector<int> holders(std::size_t(s.positions()), 0);
  for (int r = 0; r < s.ranks(); ++r) {
    index_t local = 0;
    std::size_t n = 0;
    for (key_interval const& k : s.intervals(r)) {
      REQUIRE(!k.empty());
      CHECK(s.local_start(r, n++) == local);
      for (index_t i = k.first; i < k.last; ++i, ++local) {
        ++holders[std::size_t(i)];
        CHECK(s.global(r, local) == i);
        CHECK(s.rank_of(i) == r);
        CHECK(s.local(i) == local);
      }
    }
    CHECK(s.size(r) == local);
    CHECK(s.size(r) <= s.largest());
  }
  for (int const n : holders) CHECK(n == 1);
}

TEST_CASE("sharding::contiguous: blocks in the order of the ranks; the first ones hold one position more") {
  auto const s = sharding::contiguous(8, 3);
  CHECK(of_rank(s, 0) == intervals{{0, 3}});
  CHECK(of_rank(s, 1) == intervals{{3, 6}});
  CHECK(of_rank(s, 2) == intervals{{6, 8}});
  CHECK(s.is_contiguous());
  CHECK(s.largest() == 3);
}

TEST_CASE("sharding::zigzag: a block from the front and its mirror image; blocks that touch are one") {
  auto const s = sharding::zigzag(14, 3);  // blocks of 3 3 2 2 2 2
  CHECK(of_rank(s, 0) == intervals{{0, 3}, {12, 14}});
  CHECK(of_rank(s, 1) == intervals{{3, 6}, {10, 12}});
  CHECK(of_rank(s, 2) == intervals{{6, 10}});
  CHECK(!s.is_contiguous());
  CHECK(of_rank(sharding::zigzag(5, 1), 0) == intervals{{0, 5}});
  CHECK(sharding::zigzag(5, 1).is_contiguous());
}

TEST_CASE("sharding::zigzag: under a causal mask the ranks have the same number of pairs") {
  auto const s = sharding::zigzag(64, 4);
  for (int r = 0; r < 4; ++r) {
    index_t pairs = 0;
    for (key_interval const& k : s.intervals(r))
      for (index_t i = k.first; i < k.last; ++i) pairs += i + 1;
    CHECK(pairs == 64 * 65 / 2 / 4);
  }
}

TEST_CASE("sharding: more ranks than positions, and no positions at all") {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (index_t positions = 0; positions <= 20; ++positions) {
      check_places(sharding::contiguous(positions, ranks));
      check_places(sharding::zigzag(positions, ranks));
    }
  CHECK(sharding::contiguous(2, 5).size(4) == 0);
  CHECK(to_string(sharding::contiguous(2, 5), 4) == "none");
  CHECK(to_string(sharding::zigzag(14, 3), 1) == "[3, 6) [10, 12)");
}

TEST_CASE("sharding::of: uneven shards, empty intervals, drawn shards") {
  auto const s = sharding::of(10, {{{7, 9}}, {}, {{0, 2}, {2, 2}, {2, 7}, {9, 10}}});
  CHECK(of_rank(s, 0) == intervals{{7, 9}});
  CHECK(of_rank(s, 1) == intervals{});
  CHECK(of_rank(s, 2) == intervals{{0, 7}, {9, 10}});
  CHECK(!s.is_contiguous());
  check_places(s);
  CHECK(sharding::of(5, {{{0, 1}}, {}, {{1, 5}}}).is_contiguous());
  CHECK(!sharding::of(5, {{{1, 5}}, {{0, 1}}}).is_contiguous());
  std::mt19937 random(7);
  for (int n = 0; n < 200; ++n) {
    int const ranks = 1 + int(random() % 6);
    std::vector<intervals> shards{std::size_t(ranks)};
    index_t at = 0;
    for (int pieces = int(random() % 12); pieces > 0; --pieces) {
      index_t const next = at + index_t(random() % 5);
      shards[random() % std::size_t(ranks)].push_back({at, next});
      at = next;
    }
    check_places(sharding::of(at, shards));
  }
}

TEST_CASE("sharding: equal if every rank holds the same positions") {
  CHECK(sharding::contiguous(8, 2) == sharding::of(8, {{{0, 1}, {1, 4}}, {{4, 8}}}));
  CHECK(!(sharding::contiguous(8, 2) == sharding::zigzag(8, 2)));
  CHECK(!(sharding::contiguous(8, 2) == sharding::contiguous(9, 2)));
  CHECK(!(sharding::contiguous(8, 1) == sharding::of(8, {{{0, 8}}, {}})));
}

TEST_CASE("sharding: errors name the rank and the argument") {
  CHECK(error_of([] { sharding::contiguous(-1, 2); }) ==
        "attune::sharding::contiguous: positions has the value -1; expected a number of positions >= 0");
  CHECK(error_of([] { sharding::zigzag(4, 0); }) ==
        "attune::sharding::zigzag: ranks has the value 0; expected at least 1 rank");
  CHECK(error_of([] { sharding::of(4, {}); }) ==
        "attune::sharding::of: ranks has the value 0; expected at least 1 rank");
  CHECK(
      error_of([] { sharding::of(4, {{{0, 2}}, {{2, 5}}}); }) ==
      "attune::sharding::of: shards, rank 1, has the interval [2, 5); expected 0 <= first <= last <= 4, the number of "
      "positions");
  CHECK(error_of([] { sharding::of(4, {{{-1, 2}}, {{2, 4}}}); }) ==
        "attune::sharding::of: shards, rank 0, has the interval [-1, 2); expected 0 <= first <= last <= 4, the number "
        "of positions");
  CHECK(
      error_of([] { sharding::of(4, {{{0, 1}, {3, 2}}}); }) ==
      "attune::sharding::of: shards, rank 0, has the interval [3, 2); expected 0 <= first <= last <= 4, the number of "
      "positions");
  CHECK(error_of([] { sharding::of(4, {{{2, 4}, {0, 2}}}); }) ==
        "attune::sharding::of: shards, rank 0, has the interval [0, 2) after position 3; expected ascending intervals "
        "that do not overlap");
  CHECK(error_of([] { sharding::of(4, {{{0, 3}}, {{2, 4}}}); }) ==
        "attune::sharding::of: shards, ranks 0 and 1, has position 2 twice; expected each position on one rank");
  CHECK(error_of([] { sharding::of(4, {{{0, 1}}, {{2, 4}}}); }) ==
        "attune::sharding::of: shards has no rank for position 1; expected each of the 4 positions on one rank");
  CHECK(error_of([] { sharding::of(4, {{{0, 2}}, {}}); }) ==
        "attune::sharding::of: shards has no rank for position 2; expected each of the 4 positions on one rank");
  auto const s = sharding::contiguous(4, 2);
  CHECK(error_of([&] { s.size(2); }) == "attune::sharding: rank has the value 2; expected a number from 0 to 1");
  CHECK(error_of([&] { s.global(1, 2); }) ==
        "attune::sharding::global: local has the value 2; expected a number from 0 to 1: rank 1 holds 2 positions");
  CHECK(error_of([&] { s.rank_of(4); }) ==
        "attune::sharding::rank_of: position has the value 4; expected a number from 0 to 3");
  CHECK(error_of([&] { s.local(-1); }) ==
        "attune::sharding::local: position has the value -1; expected a number from 0 to 3");
}

}  // namespace
}  // namespace attune::test
