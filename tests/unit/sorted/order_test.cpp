// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <random>
#include <vector>

#include <attune/sorted/order.hpp>

#include "../check.hpp"

namespace attune::test {
namespace {

using sorted::visibility;

/// How often each pair is met; fails if a list is not sorted by (value, index).
std::vector<int> met(visibility sees, index_t queries, index_t keys) {
  std::mt19937 random(unsigned(queries * 1000 + keys));
  std::vector<double> q(std::size_t(queries), 0.0), k(std::size_t(keys), 0.0);
  for (auto* x : {&q, &k})
    for (double& e : *x) e = double(random() % 20);
  sorted::arrays<double> const in{
      tensor<double const>(q.data(), {1, 1, queries, 1}), tensor<double const>(k.data(), {1, 1, keys, 1}), {}};
  sorted::detail::line<double> const on(in, {1, 1, 1, 1, queries, keys, 1}, 0, 0);
  std::vector<int> count(std::size_t(queries * keys), 0);
  auto const ordered = [](std::span<index_t const> list, std::vector<double> const& x) {
    return std::is_sorted(list.begin(), list.end(), [&](index_t a, index_t b) {
      return std::pair(x[std::size_t(a)], a) < std::pair(x[std::size_t(b)], b);
    });
  };
  sorted::detail::for_each_visible(
      sees, on,
      [&](std::span<index_t const> rows, std::span<index_t const> columns) {
        CHECK(ordered(rows, q));
        CHECK(ordered(columns, k));
        for (index_t const i : rows)
          for (index_t const j : columns) ++count[std::size_t(i * keys + j)];
      },
      [&](index_t i, index_t first, index_t last) {
        CHECK(last - first < sorted::detail::shortest_block);
        for (index_t j = first; j < last; ++j) ++count[std::size_t(i * keys + j)];
      });
  return count;
}

TEST_CASE("for_each_visible: every visible pair once, no other") {
  for (auto const sees : {visibility::full, visibility::causal})
    for (index_t const queries : {0, 1, 5, 31, 64, 97, 300})
      for (index_t const keys : {0, 1, 31, 32, 33, 64, 127, 128, 129, 300}) {
        CAPTURE(queries);
        CAPTURE(keys);
        auto const count = met(sees, queries, keys);
        bool right = true;
        for (index_t i = 0; i < queries; ++i)
          for (index_t j = 0; j < keys; ++j)
            right = right && count[std::size_t(i * keys + j)] == (sees == visibility::full || j <= i + keys - queries ? 1 : 0);
        CHECK(right);
      }
}

TEST_CASE("ascend and descend: sources before a target, and strictly behind it") {
  std::vector<double> const at{1, 2, 2, 5}, from{0, 2, 5, 7};
  std::vector<index_t> const targets{0, 1, 2, 3}, sources{0, 1, 2, 3};
  std::vector<int> left, strictly, right;
  int seen = 0;
  auto const absorb = [&](index_t) { ++seen; };
  sorted::detail::ascend<double>(targets, at, sources, from, sorted::detail::not_behind<double>, absorb,
                                 [&](index_t) { left.push_back(seen); });
  seen = 0;
  sorted::detail::ascend<double>(targets, at, sources, from, sorted::detail::before<double>, absorb,
                                 [&](index_t) { strictly.push_back(seen); });
  seen = 0;
  sorted::detail::descend<double>(targets, at, sources, from, absorb, [&](index_t) { right.push_back(seen); });
  CHECK(left == std::vector<int>{1, 2, 2, 3});
  CHECK(strictly == std::vector<int>{1, 1, 1, 2});
  CHECK(right == std::vector<int>{1, 2, 2, 3});  // of the last target first
}

}  // namespace
}  // namespace attune::test
