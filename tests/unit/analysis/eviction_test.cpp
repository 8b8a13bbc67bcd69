// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include <attune/analysis/eviction/density.hpp>
#include <attune/analysis/eviction/first_and_recent.hpp>
#include <attune/analysis/eviction/geometric.hpp>
#include <attune/analysis/eviction/heavy_hitters.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using namespace attune::eviction;
using numbers = std::vector<double>;
using indices = std::vector<index_t>;
using view = std::span<double const>;

TEST_CASE("geometric: a closed range and a sink zone") {
  numbers const keys{-5, 1, 2, 4, 4.5, 0}, recent{3, 2};
  auto const range = reached(view(recent), 1.0);
  CHECK(range.from == 1);
  CHECK(range.to == 4);
  CHECK(keep_in_range(view(keys), range) == indices{1, 2, 3});  // both ends stay
  CHECK(keep_in_range(view(keys), range, zone<double>{-0.5, 0}) == indices{1, 2, 3, 5});
  CHECK(keep_in_range(view(), range).empty());
}

TEST_CASE("geometric: what is lost of a row is within the stated share") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  numbers keys(500), recent(20);
  for (double& k : keys) k = 2 * normal(random);
  for (double& q : recent) q = 0.5 * normal(random);
  double const tau = 0.3, reach = 1.5;
  auto const kept = keep_in_range(view(keys), reached(view(recent), reach));
  for (double const q : recent) {
    double all = 0, left = 0, nearest = inf;
    for (double const k : keys) all += std::exp(-(q - k) * (q - k) / tau);
    for (index_t const j : kept) {
      double const d = std::fabs(q - keys[std::size_t(j)]);
      left += std::exp(-d * d / tau);
      nearest = std::min(nearest, d);
    }
    CHECK((all - left) / all <= double(keys.size()) * std::exp((nearest * nearest - reach * reach) / tau));
  }
}

TEST_CASE("density: centroid, mean value, multiplicity") {
  numbers const keys{0.25, 1.5, 0.75, -0.5}, values{1, 10, 5, 30, 3, 20, 7, 40};
  auto const c = compress(view(keys), view(values), 1.0);
  CHECK(c.width == 2);
  CHECK(c.keys == numbers{-0.5, 0.5, 1.5});
  CHECK(c.values == numbers{7, 40, 2, 15, 5, 30});
  CHECK(c.multiplicity == numbers{1, 2, 1});
  CHECK(near(c.log_multiplicity(1), ln2));
  auto const again = compress(view(c.keys), view(c.values), 4.0, -2.0, view(c.multiplicity));  // as if at once
  CHECK(again.keys == numbers{0.5});
  CHECK(again.values == numbers{4, 25});
  CHECK(again.multiplicity == numbers{4});
}

/// Attention of one query with temperature tau, values of width 1.
double attend(double q, double tau, numbers const& keys, numbers const& values, numbers const& multiplicity) {
  double z = 0, sum = 0;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    double const w = multiplicity[j] * std::exp(-(q - keys[j]) * (q - keys[j]) / tau);
    z += w;
    sum += w * values[j];
  }
  return sum / z;
}

TEST_CASE("density: with the multiplicity the error is of second order in the width of a bin, without it is not") {
  numbers keys, values;
  for (int n = 0; n < 1000; ++n) {  // a dense cluster of one value and a few keys of another
    keys.push_back(n % 10 == 0 ? -0.6 - 1e-4 * n : 0.8 + 1e-4 * n);
    values.push_back(n % 10 == 0 ? 5 : -1 + 1e-3 * n);
  }
  numbers const ones(keys.size(), 1.0);
  double const exact = attend(0, 0.5, keys, values, ones);
  double last = 0;
  for (double const width : {0.1, 0.05, 0.025}) {
    auto const c = compress(view(keys), view(values), width);
    double const error = std::fabs(attend(0, 0.5, c.keys, c.values, c.multiplicity) - exact);
    double const printed = std::fabs(attend(0, 0.5, c.keys, c.values, numbers(c.keys.size(), 1.0)) - exact);
    CHECK(error < 3 * width * width);
    CHECK(printed > 0.3);
    if (last > 0) CHECK(error < last / 3);
    last = error;
  }
}

TEST_CASE("density: bins far from 0 keep the digits of their centroid") {
  numbers const keys{1e9 + 0.25, 1e9 + 0.5}, values{1, 2};
  CHECK(compress(view(keys), view(values), 1.0).keys == numbers{1e9 + 0.375});
  CHECK(compress(view(), view(), 1.0).keys.empty());
}

TEST_CASE("heavy hitters: the recent half of the budget, then those that received most") {
  numbers received{5, 1, 5, 0, 2, 0, 0};
  CHECK(keep_heavy_hitters(view(received), 5) == indices{0, 2, 4, 5, 6});
  CHECK(keep_heavy_hitters(view(received), 3) == indices{0, 5, 6});  // of the two with 5 the lower index
  CHECK(keep_heavy_hitters(view(received), 1) == indices{6});
  CHECK(keep_heavy_hitters(view(received), 0).empty());
  CHECK(keep_heavy_hitters(view(received), 7).size() == 7);
  CHECK(keep_heavy_hitters(view(received), 100).size() == 7);
  numbers const w{0.5, 0, 0, 0, 0, 0.5, 0};
  receive(std::span(received), view(w));
  CHECK(received == numbers{5.5, 1, 5, 0, 2, 0.5, 0});
}

TEST_CASE("heavy hitters: as many as the budget, the recent ones, and no heavier key goes") {
  std::mt19937 random(2);
  for (std::size_t n = 0; n < 40; ++n) {
    numbers received(n);
    for (double& h : received) h = double(random() % 6);
    for (std::size_t budget = 0; budget < 45; ++budget) {
      auto const kept = keep_heavy_hitters(view(received), budget);
      CHECK(kept.size() == std::min(n, budget));
      CHECK(std::is_sorted(kept.begin(), kept.end()));
      std::size_t const recent = std::min(n, (budget + 1) / 2);
      auto const stays = [&](std::size_t j) { return std::binary_search(kept.begin(), kept.end(), index_t(j)); };
      double least = inf;
      for (std::size_t j = 0; j < n; ++j) {
        if (j >= n - recent) CHECK(stays(j));
        if (j < n - recent && stays(j)) least = std::min(least, received[j]);
      }
      for (std::size_t j = 0; j < n - recent; ++j)
        if (!stays(j)) CHECK((received[j] <= least || kept.size() == recent));
    }
  }
}

TEST_CASE("first and recent: both ends, once each") {
  CHECK(keep_first_and_recent(10, 2, 3) == indices{0, 1, 7, 8, 9});
  CHECK(keep_first_and_recent(4, 2, 3) == indices{0, 1, 2, 3});
  CHECK(keep_first_and_recent(1, 2, 3) == indices{0});
  CHECK(keep_first_and_recent(5, 0, 2) == indices{3, 4});
  CHECK(keep_first_and_recent(5, 2, 0) == indices{0, 1});
  CHECK(keep_first_and_recent(0, 2, 2).empty());
}

TEST_CASE("eviction: bad input is refused in words") {
  numbers const one{1}, bad{nan}, two{1, 2};
  numbers received{0};
  CHECK(error_of([&] { reached(view(), 1.0); }) ==
        "attune::eviction::reached: recent_queries has no element; expected at least one");
  CHECK(error_of([&] { reached(view(one), -1.0); }) ==
        "attune::eviction::reached: reach has the value -1; expected a number >= 0");
  CHECK(error_of([&] { keep_in_range(view(bad), {0.0, 1.0}); }) ==
        "attune::eviction::keep_in_range: keys has NaN at 0; expected numbers");
  CHECK(error_of([&] { keep_in_range(view(one), {1.0, 0.0}); }) ==
        "attune::eviction::keep_in_range: range has the ends 1 and 0; expected numbers, the smaller one first");
  CHECK(error_of([&] { compress(view(one), view(one), 0.0); }) ==
        "attune::eviction::compress: bin_width has the value 0; expected a finite number > 0");
  CHECK(error_of([&] { compress(view(two), view(one), 1.0); }) ==
        "attune::eviction::compress: values has 1 numbers; expected a multiple of 2, the number of keys");
  CHECK(error_of([&] { compress(view(bad), view(one), 1.0); }) ==
        "attune::eviction::compress: keys has the value nan at 0; expected finite numbers");
  CHECK(error_of([&] { keep_heavy_hitters(view(bad), 1); }) ==
        "attune::eviction::keep_heavy_hitters: received has NaN at 0; expected numbers");
  CHECK(error_of([&] { receive(std::span(received), view(bad)); }) ==
        "attune::eviction::receive: weights has NaN at 0; expected numbers");
  CHECK(received == numbers{0});
}

}  // namespace
}  // namespace attune::test
