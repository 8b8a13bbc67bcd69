// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A mask that is shifted has a name, however few numbers hold most of the residual: in row 0 of a causal kernel of 16
// bits, a few elements have no rounding to speak of. `full`: 100 seeds of each shape and type.
#include <cstdint>
#include <iterator>
#include <string>

#include "../../support/float_kernel.hpp"
#include "../../support/planted.hpp"
#include "../check.hpp"

namespace attune::test {
namespace {

using certify::storage;

constexpr kernel_extents shapes[] = {{4, 128, 128, 32}, {2, 96, 96, 64},  {4, 64, 64, 16},
                                     {8, 48, 48, 32},   {2, 80, 144, 32}, {1, 150, 150, 32}};
/// A tile: how far a mask that is aligned at the first key is off where there are so many more keys than queries.
constexpr index_t tile = 64;

/// Names the shifts of one shape and type.
void check_shifts(kernel_extents const& e, storage stored, std::uint64_t seed) {
  float_kernel const kernel(e, stored, seed);
  auto const named = [&](index_t later, std::string const& words) {
    testing::verdict_report const r = kernel.judged({.later = later, .lse = 0});
    INFO(testing::name_of(stored) << ", " << e.queries << " x " << e.keys << ", seed " << seed << '\n' << printed(r));
    CHECK(r.decision == testing::judgement::fail);
    CHECK(!r.reasons.empty());
    if (!r.reasons.empty()) CHECK(r.reasons[0].rfind(words, 0) == 0);
  };
  named(1, "behaves as if: mask shifted by +1");
  named(-1, "behaves as if: mask shifted by -1");
  if (e.keys - e.queries == tile) named(-tile, "behaves as if: mask aligned top-left");
}

TEST_SUITE_BEGIN("verdict");

TEST_CASE("shifted masks of 16 bits are named") {
  check_shifts(shapes[2], storage::bf16, 1);
  check_shifts(shapes[4], storage::fp16, 1);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("full verdict");

TEST_CASE("shifted masks of 16 bits are named, 100 seeds") {
  for (std::uint64_t seed = 100; seed < 200; ++seed)  // every shape and type in turns
    check_shifts(shapes[seed % std::size(shapes)], seed / std::size(shapes) % 2 == 0 ? storage::bf16 : storage::fp16,
                 seed);
}

TEST_SUITE_END();

}  // namespace
}  // namespace attune::test
