// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <random>
#include <vector>

#include <support/sights.hpp>
#include <unit/check.hpp>

#include <attune/line/order/order.hpp>

namespace attune::test {
namespace {

line::detail::sight of(sight const& s, index_t queries, index_t keys) {
  problem_shape p;
  p.batch = p.heads = 1, p.queries = queries, p.keys = keys, p.set_offset(keys - queries);
  line::detail::require_intervals("test", s.mask(), p);
  return {s.mask(), p, 0, 0};
}

/// How often each pair is met; fails if a list is not sorted by (value, index).
std::vector<int> met(line::detail::sight const& sees, index_t queries, index_t keys) {
  std::mt19937 random(unsigned(queries * 1000 + keys));
  std::vector<double> q(std::size_t(queries), 0.0), k(std::size_t(keys), 0.0);
  for (auto* x : {&q, &k})
    for (double& e : *x) e = double(random() % 20);
  line::detail::arrays<double> const in{
      tensor<double const>(q.data(), {1, 1, queries, 1}), tensor<double const>(k.data(), {1, 1, keys, 1}), {}};
  line::detail::scalars<double> const on(in, {1, 1, 1, 1, queries, keys, 1}, 0, 0);
  std::vector<int> count(std::size_t(queries * keys), 0);
  auto const ordered = [](std::span<index_t const> list, std::vector<double> const& x) {
    return std::is_sorted(list.begin(), list.end(), [&](index_t a, index_t b) {
      return std::pair(x[std::size_t(a)], a) < std::pair(x[std::size_t(b)], b);
    });
  };
  line::detail::for_each_visible(
      sees, on, line::detail::shortest_block,
      [&](std::span<index_t const> rows, std::span<index_t const> columns) {
        CHECK(ordered(rows, q));
        CHECK(ordered(columns, k));
        for (index_t const i : rows)
          for (index_t const j : columns) ++count[std::size_t(i * keys + j)];
      },
      [&](index_t i, index_t first, index_t last) {
        CHECK(last - first < line::detail::shortest_block);
        for (index_t j = first; j < last; ++j) ++count[std::size_t(i * keys + j)];
      });
  return count;
}

TEST_CASE("for_each_visible: every visible pair once, no other") {
  for (index_t const queries : {0, 1, 5, 31, 64, 97, 300})
    for (index_t const keys : {0, 1, 31, 32, 33, 64, 127, 128, 129, 300})
      for (sight const& s : all_sights(queries, keys)) {
        CAPTURE(queries);
        CAPTURE(keys);
        CAPTURE(s.name);
        auto const count = met(of(s, queries, keys), queries, keys);
        auto const rows = of(s, queries, keys).intervals();
        bool right = true;
        for (index_t i = 0; i < queries; ++i)
          for (index_t j = 0; j < keys; ++j) {
            auto const& row = rows[std::size_t(i)];
            right = right && count[std::size_t(i * keys + j)] == (s.sees(i, j) ? 1 : 0) &&
                    (j >= row.first && j < row.last) == s.sees(i, j);
          }
        CHECK(right);
      }
}

TEST_CASE("for_each_visible: work grows like n log n under windows and documents too") {
  for (index_t const n : {1000, 4000})
    for (sight const& s : all_sights(n, n)) {
      std::vector<double> const x(std::size_t(n), 0.0);
      line::detail::arrays<double> const in{
          tensor<double const>(x, {1, 1, n, 1}), tensor<double const>(x, {1, 1, n, 1}), {}};
      line::detail::scalars<double> const on(in, {1, 1, 1, 1, n, n, 1}, 0, 0);
      index_t touched = 0;
      line::detail::for_each_visible(
          of(s, n, n), on, line::detail::shortest_block,
          [&](std::span<index_t const> rows, std::span<index_t const> columns) {
            touched += index_t(rows.size() + columns.size());
          },
          [&](index_t, index_t first, index_t last) { touched += last - first; });
      CAPTURE(s.name);
      CHECK(touched <= n * (2 * 12 + 2 * line::detail::shortest_block));
    }
}

TEST_CASE("ascend and descend: sources before a target, and strictly behind it") {
  std::vector<double> const at{1, 2, 2, 5}, from{0, 2, 5, 7};
  std::vector<index_t> const targets{0, 1, 2, 3}, sources{0, 1, 2, 3};
  std::vector<int> left, strictly, right;
  int seen = 0;
  auto const accumulate = [&](index_t) { ++seen; };
  line::detail::ascend<double>(targets, at, sources, from, line::detail::not_behind<double>, accumulate,
                               [&](index_t) { left.push_back(seen); });
  seen = 0;
  line::detail::ascend<double>(targets, at, sources, from, line::detail::before<double>, accumulate,
                               [&](index_t) { strictly.push_back(seen); });
  seen = 0;
  line::detail::descend<double>(targets, at, sources, from, accumulate, [&](index_t) { right.push_back(seen); });
  CHECK(left == std::vector<int>{1, 2, 2, 3});
  CHECK(strictly == std::vector<int>{1, 1, 1, 2});
  CHECK(right == std::vector<int>{1, 2, 2, 3});  // of the last target first
}

}  // namespace
}  // namespace attune::test
