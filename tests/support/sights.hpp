// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every kind of mask that operators on a line take, as one type, beside the rule that it stands for.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <attune/policies/mask/runtime.hpp>

namespace attune::test {

struct sight {
  std::string name;
  std::function<bool(index_t query, index_t key)> sees;
  std::shared_ptr<std::vector<key_interval>> rows;  ///< what each query sees

  mask::runtime mask() const { return {rows->data(), {1, 1, index_t(rows->size()), 1}}; }
};

/// Documents of about `length` keys; queries are aligned with the last keys, and one id in seven has no keys.
inline sight in_documents(sight s, index_t queries, index_t keys, index_t length) {
  s.name += ", documents";
  std::vector<index_t> q, k;
  auto const id = [=](index_t at) { return (at + 3 * length) / length; };
  for (index_t j = 0; j < keys; ++j) k.push_back(id(j) % 7 == 6 ? id(j) + 1 : id(j));
  for (index_t i = 0; i < queries; ++i) q.push_back(std::max(id(i + keys - queries), i == 0 ? 0 : q.back()));
  s.rows = std::make_shared<std::vector<key_interval>>(*s.rows);
  for (index_t i = 0; i < queries; ++i) {
    auto const [first, last] = std::equal_range(k.begin(), k.end(), q[std::size_t(i)]);
    key_interval& row = (*s.rows)[std::size_t(i)];
    row = {std::max(row.first, first - k.begin()), std::min(row.last, last - k.begin())};
    if (row.empty()) row = {0, 0};
  }
  s.sees = [rule = s.sees, q, k](index_t i, index_t j) { return rule(i, j) && q[std::size_t(i)] == k[std::size_t(j)]; };
  return s;
}

inline std::vector<sight> all_sights(index_t queries, index_t keys) {
  index_t const offset = keys - queries;
  // Keys from `before` positions back to `after` ahead.
  auto const near = [=](std::string const& name, index_t before, index_t after) {
    sight s{name, [=](index_t i, index_t j) { return j - i - offset <= after && i + offset - j <= before; },
            std::make_shared<std::vector<key_interval>>()};
    for (index_t i = 0; i < queries; ++i) {
      key_interval const row{std::max(i + offset - before, index_t(0)), std::min(i + offset + after + 1, keys)};
      s.rows->push_back(row.empty() ? key_interval{0, 0} : row);
    }
    return s;
  };
  auto const causal_window = [=](index_t width) {
    return near("causal window " + std::to_string(width), width - 1, 0);
  };
  auto const window = [=](index_t radius) { return near("window " + std::to_string(radius), radius, radius); };
  index_t const all = queries + keys;
  sight const full = near("full", all, all), causal = near("causal", all, 0);
  index_t const wide = keys / 2 + 1, length = keys / 3 + 1;
  return {full,
          causal,
          causal_window(1),
          causal_window(wide),
          window(7),
          window(wide),
          in_documents(full, queries, keys, length),
          in_documents(causal, queries, keys, length),
          in_documents(window(wide), queries, keys, length)};
}

}  // namespace attune::test
