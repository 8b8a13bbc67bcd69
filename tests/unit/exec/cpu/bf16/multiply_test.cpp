// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The three products of a tile on pairs of bf16 numbers, by unit: each sum has the bits of its own arithmetic, whatever
// the numbers and however rows and pairs fill the registers.
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/bf16/multiply.hpp>

#include "arithmetic.hpp"

namespace attune::test {
namespace {

using namespace exec_cpu;
using arch = xsimd::default_arch;
using tile = tiling<float, arch>;

/// Pairs of one kind of number: any bits; exponents near the one of 1; subnormal numbers and products; products near
/// the largest number.
struct drawn_pairs {
  static constexpr int kinds = 4;
  int kind;
  std::mt19937 random{61};
  number_pair operator()() {
    constexpr std::uint32_t keep[] = {0xffff, 0x83ff, 0x8fff, 0x80ff}, more[] = {0, 0x3c00, 0, 0x5f00};
    auto const number = [&] { return number_pair((random() & keep[kind]) | more[kind]); };
    number_pair const first = number();
    return first | number() << 16;
  }
  std::vector<number_pair> some(index_t n) {
    std::vector<number_pair> x(static_cast<std::size_t>(n));
    for (number_pair& e : x) e = (*this)();
    return x;
  }
};

/// [row][column]: the sum over pairs of a(row, pair) . b[pair][column], for n rows and the columns of a tile.
template <class Unit, class A>
std::vector<float> expected_sums(index_t n, index_t pairs, A const& a, std::vector<number_pair> const& b) {
  auto const half = [](number_pair x, int shift) { return std::bit_cast<float>(x >> shift << 16); };
  std::vector<float> sums;
  for (index_t r = 0; r < n; ++r)
    for (index_t l = 0; l < tile::queries; ++l) {
      float sum = 0;
      for (index_t c = 0; c < pairs; ++c) {
        number_pair const x = a(r, c), y = b[std::size_t(c * tile::queries + l)];
        sum = pair_sum_of<Unit>::add(sum, half(x, 0), half(y, 0), half(x, 16), half(y, 16));
      }
      sums.push_back(sum);
    }
  return sums;
}

}  // namespace

TEST_SUITE("tiles of bf16 pairs") {
  TEST_CASE("each sum of a product has its own arithmetic, whatever the numbers of rows and pairs") {
    each_pair_unit([]<class Unit>(Unit) {
      using multiplier = pair_multiplier<Unit>;
      for (int kind = 0; kind < drawn_pairs::kinds; ++kind)
        for (index_t n : {1, 3, 4, 7, 8, 13})
          for (index_t pairs : {1, 2, 3, 4, 7, 8, 13}) {
            CAPTURE(kind);
            CAPTURE(n);
            CAPTURE(pairs);
            drawn_pairs random{kind};
            auto const drawn_b = random.some(pairs * tile::queries);
            aligned_copy<number_pair> b(drawn_b);
            std::vector<float> start(std::size_t(n * tile::queries), -0.0f);  // -0 + x has the bits of x
            for (std::size_t l = 0; l < start.size(); l += 3) start[l] = 1.0f;
            auto const onto_start = [&](std::vector<float> x) {
              for (std::size_t l = 0; l < x.size(); ++l) x[l] = start[l] + x[l];
              return x;
            };

            index_t const key_step = pairs + 1;
            auto const keys = random.some(n * key_step);
            aligned_copy<float> scores(start);
            multiplier::template contract<arch>(scores.data(), keys.data(), key_step, b.data(), pairs, n);
            auto const by_key = [&](index_t r, index_t c) { return keys[std::size_t(r * key_step + c)]; };
            CHECK(count_different(scores.data(), expected_sums<Unit>(n, pairs, by_key, drawn_b)) == 0);

            index_t const of_pair = n + 3;
            auto const values = random.some(pairs * of_pair);
            aligned_copy<float> added(start);
            multiplier::template accumulate<arch>(added.data(), {values.data(), of_pair, 1}, b.data(), pairs, n);
            auto const by_feature = [&](index_t r, index_t c) { return values[std::size_t(c * of_pair + r)]; };
            CHECK(count_different(added.data(), onto_start(expected_sums<Unit>(n, pairs, by_feature, drawn_b))) == 0);

            if (pairs > tile::lanes) continue;  // a tile has no more pairs of queries
            auto const weights = random.some(n * tile::lanes);
            std::vector<float> rows = start;
            multiplier::template outer<arch>(rows.data(), tile::queries, weights.data(), b.data(), pairs, n);
            auto const by_weight = [&](index_t r, index_t c) { return weights[std::size_t(r * tile::lanes + c)]; };
            CHECK(count_different(rows.data(), onto_start(expected_sums<Unit>(n, pairs, by_weight, drawn_b))) == 0);
          }
    });
  }
}

}  // namespace attune::test
