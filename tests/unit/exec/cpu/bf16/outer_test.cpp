// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The products of the backward pass on pairs of bf16 numbers: against each number's own arithmetic, in the same order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <unit/check.hpp>

#include <attune/exec/cpu/bf16/outer.hpp>

#include "arithmetic.hpp"

namespace attune::test {
namespace {

using namespace exec_cpu;
using arch = xsimd::default_arch;
using tile = tiling<float, arch>;

float rounded_number(float x) { return float(bfloat16(flushed_number(x))); }

struct random_numbers {
  std::mt19937 random{51};
  std::normal_distribution<float> normal;
  float operator()() { return normal(random); }
  std::vector<float> some(index_t n, double zeros = 0) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& e : x) e = std::uniform_real_distribution<>()(random) < zeros ? 0.0f : (*this)();
    return x;
  }
};

/// rows[query][d] as pairs of features, [pair of features][query].
std::vector<number_pair> pairs_of_features(std::vector<float> const& rows, index_t width) {
  std::vector<number_pair> to(std::size_t(pairs_of(width) * tile::queries));
  for (index_t c = 0; c < pairs_of(width); ++c)
    for (index_t l = 0; l < tile::queries; ++l) {
      auto const at = [&](index_t d) { return d < width ? rows[std::size_t(l * width + d)] : 0.0f; };
      to[std::size_t(c * tile::queries + l)] = paired(bfloat16(at(2 * c)), bfloat16(at(2 * c + 1)));
    }
  return to;
}

/// rows[query][d] and weights[key][query] -> to[key][d], for `count` queries of a tile.
struct outer_case {
  index_t keys, width, count;
  std::vector<float> weights, rows;
  std::vector<float> const start;

  index_t step() const { return panels<float, arch>::padded_width(width); }
  template <class Unit>
  std::vector<float> computed(bool finite) const {
    aligned_copy<float> w(weights), to(start);
    aligned_copy<number_pair> features(pairs_of_features(rows, width));
    aligned_copy<number_pair> by(std::vector<number_pair>(std::size_t(keys * tile::lanes))),
        panel(std::vector<number_pair>(std::size_t(pair_panels<arch>::size(width))));
    exec_cpu::detail::pair_queries<Unit, arch>(by.data(), w.data(), keys);
    pair_panels<arch>::from_features(panel.data(), features.data(), width, count);
    outer_of_pairs<Unit, arch>(to.data(), step(), by.data(), panel.data(), count, keys, width, finite);
    return {to.data(), to.data() + start.size()};
  }
  /// Number by number. `skips`: numbers of weight 0 that are not finite count as 0.
  template <class Unit>
  std::vector<float> expected(bool skips) const {
    std::vector<float> to = start;
    for (index_t j = 0; j < keys; ++j)
      for (index_t d = 0; d < width; ++d) {
        float sum = 0;
        for (index_t c = 0; c < (std::min)(index_t(tile::lanes), count); ++c) {
          auto const weight = [&](index_t l) { return rounded_number(weights[std::size_t(j * tile::queries + l)]); };
          auto const row = [&](index_t l) {
            float const x = l < count ? rounded_number(rows[std::size_t(l * width + d)]) : 0.0f;
            return skips && weight(l) == 0 && !std::isfinite(x) ? 0.0f : x;
          };
          index_t const upper = c + tile::lanes;
          sum = pair_sum_of<Unit>::add(sum, weight(c), row(c), weight(upper), row(upper));
        }
        to[std::size_t(j * step() + d)] += sum;
      }
    return to;
  }
};

outer_case drawn_case(index_t keys, index_t width, index_t count, random_numbers& random) {
  outer_case c{keys, width, count, random.some(keys * tile::queries, 0.3), random.some(tile::queries * width), {}};
  for (index_t j = 0; j < keys; ++j)
    for (index_t l = count; l < tile::queries; ++l) c.weights[std::size_t(j * tile::queries + l)] = 0;
  std::vector<float> start(std::size_t(keys * panels<float, arch>::padded_width(width)));
  for (index_t j = 0; j < keys; ++j)
    for (index_t d = 0; d < width; ++d) start[std::size_t(j * c.step() + d)] = random();
  return {c.keys, c.width, c.count, c.weights, c.rows, start};
}

}  // namespace

TEST_SUITE("backward products of bf16 pairs") {
  TEST_CASE("an outer product adds pairs of queries in the order of one number's own arithmetic") {
    each_pair_unit([]<class Unit>(Unit) {
      random_numbers random;
      for (index_t keys : {1, 3, 8, 64})
        for (index_t width : {1, 15, 33})
          for (index_t count : {1, int(tile::lanes) - 1, int(tile::lanes) + 1, int(tile::queries)}) {
            outer_case const c = drawn_case(keys, width, count, random);
            CAPTURE(keys);
            CAPTURE(width);
            CAPTURE(count);
            auto const expected = c.expected<Unit>(false);
            CHECK(count_different(c.computed<Unit>(true).data(), expected) == 0);
            CHECK(count_different(c.computed<Unit>(false).data(), expected) == 0);
          }
    });
  }

  TEST_CASE("an outer product leaves out what is not finite and has weight 0") {
    random_numbers random;
    outer_case c = drawn_case(7, 20, tile::queries, random);
    for (index_t l : {0, 3, int(tile::lanes) + 3, int(tile::queries) - 1})
      for (index_t d = 0; d < c.width; ++d)
        c.rows[std::size_t(l * c.width + d)] = d % 3 == 0 ? float(nan) : d % 3 == 1 ? HUGE_VALF : -HUGE_VALF;
    for (index_t j = 0; j < c.keys; ++j) c.weights[std::size_t(j * tile::queries + (j % 2 == 0 ? 0 : 3))] = 0;
    each_pair_unit([&]<class Unit>(Unit) {
      auto const expected = c.expected<Unit>(true);
      CHECK(count_different(c.computed<Unit>(false).data(), expected) == 0);
      CHECK(std::any_of(expected.begin(), expected.end(), [](float x) { return std::isnan(x); }));
      CHECK(count_different(c.expected<Unit>(false).data(), expected) > 0);
    });
  }

  TEST_CASE("a sum over pairs of keys has the order of one number's own arithmetic") {
    each_pair_unit([]<class Unit>(Unit) {
      random_numbers random;
      for (bool broken : {false, true})
        for (index_t keys : {1, 2, 31, 64})
          for (index_t width : {1, 7, 40})
            for (index_t lead : {0, 1}) {
              auto const weights = random.some(keys * tile::queries, 0.3), start = random.some(width * tile::queries);
              auto rows = random.some(keys * width);
              if (broken) rows[std::size_t(keys / 2 * width)] = float(nan);
              index_t const pairs = pairs_of(keys + lead);
              std::vector<number_pair> of_keys(std::size_t(pairs * width));
              for (index_t c = 0; c < pairs; ++c)
                for (index_t d = 0; d < width; ++d) {
                  auto const at = [&](index_t j) {
                    return bfloat16(j < 0 || j >= keys ? 0.0f : rows[std::size_t(j * width + d)]);
                  };
                  of_keys[std::size_t(c * width + d)] = paired(at(2 * c - lead), at(2 * c + 1 - lead));
                }
              aligned_copy<float> w(weights), to(start);
              aligned_copy<number_pair> by(std::vector<number_pair>(std::size_t(pairs * tile::queries)));
              using groups = paired_groups<Unit, tile::key_block>;
              CHECK(groups::template pair_weights<arch>(by.data(), w.data(), lead, keys) == pairs);
              accumulate_pairs_of_keys<Unit, arch>(to.data(), {of_keys.data(), width, 1}, by.data(), pairs, width,
                                                   !broken);
              std::vector<float> expected = start;
              for (index_t d = 0; d < width; ++d)
                for (index_t l = 0; l < tile::queries; ++l) {
                  float sum = 0;
                  auto const weight = [&](index_t j) {
                    return j < 0 || j >= keys ? 0.0f : rounded_number(weights[std::size_t(j * tile::queries + l)]);
                  };
                  auto const row = [&](index_t j) {
                    float const x = j < 0 || j >= keys ? 0.0f : rounded_number(rows[std::size_t(j * width + d)]);
                    return weight(j) == 0 && !std::isfinite(x) ? 0.0f : x;
                  };
                  for (index_t j = -lead; j < keys; j += 2)
                    sum = pair_sum_of<Unit>::add(sum, weight(j), row(j), weight(j + 1), row(j + 1));
                  expected[std::size_t(d * tile::queries + l)] += sum;
                }
              CAPTURE(broken);
              CAPTURE(keys);
              CAPTURE(width);
              CAPTURE(lead);
              CHECK(count_different(to.data(), expected) == 0);
            }
    });
  }
}

}  // namespace attune::test
