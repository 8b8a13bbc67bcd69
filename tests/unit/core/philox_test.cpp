// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Philox4x32-10 against its published vectors; a batch of lanes has the same bits.
#include <cmath>
#include <cstdint>

#include <attune/exec/cpu/products/random.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

bool same(philox::words const& x, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return x.at[0] == a && x.at[1] == b && x.at[2] == c && x.at[3] == d;
}

TEST_CASE("philox: the vectors of Random123") {
  CHECK(same(philox::draw({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  CHECK(same(philox::draw({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  CHECK(same(philox::draw({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0), 0xd16cfe09,
             0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST_CASE("philox: the words of a pair") {
  std::uint64_t const seed = 0x299f31d0a4093822;
  auto const all = philox::draw({{7, 5, 3, 2}}, 0xa4093822, 0x299f31d0);
  for (int r = 0; r < 4; ++r) CHECK(detail::pair_number(seed, 2, 3, 5, 28 + r) == float(all.at[r] >> 8) / 16777216);
  CHECK(detail::pair_number(seed, 2, 3, -1, 28) ==
        detail::unit_number(philox::draw({{7, 0xffffffffu, 3, 2}}, 0xa4093822, 0x299f31d0).at[0]));
  CHECK(detail::unit_number(~0u) < 1);
}

template <class T>
void lanes_agree() {
  using numbers = exec_cpu::random_numbers<T, xsimd::default_arch>;
  using counters = typename numbers::counters;
  using batch = typename numbers::batch;
  int different = 0;
  index_t const highest = sizeof(index_t) > 4 ? index_t(std::int64_t(1) << 31) : index_t(1) << 24;  // i686: 32 bits
  for (std::uint64_t seed : {std::uint64_t(0), std::uint64_t(0xa4093822299f31d0)}) {
    numbers const random(seed, 3, 5);
    auto const place = [](index_t l) { return 1001 * l - 3; };
    for (index_t other : {index_t(0), index_t(77), highest})
      for (bool lanes_are_queries : {true, false}) {
        batch u[4];
        if (lanes_are_queries)
          random.draw(counters(std::uint32_t(other)), counters::of(place), u);
        else
          random.draw(counters::of([](index_t l) { return 3 * l; }), counters(std::uint32_t(other)), u);
        for (int r = 0; r < 4; ++r) {
          alignas(64) T lane[batch::size];
          u[r].store_aligned(lane);
          for (index_t l = 0; l < index_t(batch::size); ++l) {
            float const alone = lanes_are_queries ? detail::pair_number(seed, 3, 5, place(l), 4 * other + r)
                                                  : detail::pair_number(seed, 3, 5, other, 4 * (3 * l) + r);
            different += lane[l] != T(alone);
          }
        }
      }
  }
  CHECK(different == 0);
}
TEST_CASE("philox: lanes of floats and of doubles have the bits of one number") {
  lanes_agree<float>();
  lanes_agree<double>();
}

TEST_CASE("philox: uniform over pairs, and different for every batch, head and seed") {
  // 10^6 pairs: the mean has the standard deviation 1 / sqrt(12 n), a share p has sqrt(p (1 - p) / n).
  double sum = 0, below = 0, equal = 0;
  index_t const n = 1000;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) {
      float const u = detail::pair_number(11, 1, 2, i, j);
      sum += double(u);
      below += u < 0.3f;
      if (i < 100 && j < 100)
        equal += (u == detail::pair_number(11, 0, 2, i, j)) + (u == detail::pair_number(11, 1, 3, i, j)) +
                 (u == detail::pair_number(12, 1, 2, i, j)) +
                 (u == detail::pair_number(11 + (std::uint64_t(1) << 32), 1, 2, i, j));
    }
  CHECK(std::fabs(sum / 1e6 - 0.5) < 5 / std::sqrt(12e6));
  CHECK(std::fabs(below / 1e6 - 0.3) < 5 * std::sqrt(0.3 * 0.7 / 1e6));
  CHECK(equal <= 2);  // of 40,000, each by chance with probability 2^-24
}

}  // namespace
}  // namespace attune::test
