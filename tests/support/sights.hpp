// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every kind of visibility of the sums over sorted keys, beside the rule that it stands for.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <attune/sorted/visibility.hpp>

namespace attune::test {

struct sight {
  std::string name;
  sorted::visibility value;
  std::function<bool(index_t query, index_t key)> sees;
  std::shared_ptr<std::vector<index_t>> of_queries{}, of_keys{};  ///< what `value` reads
};

/// Documents of about `length` keys; queries are aligned with the last keys, and one id in seven has no keys.
inline sight in_documents(sight s, index_t queries, index_t keys, index_t length) {
  s.name += ", documents";
  s.of_queries = std::make_shared<std::vector<index_t>>();
  s.of_keys = std::make_shared<std::vector<index_t>>();
  auto const id = [=](index_t at) { return (at + 3 * length) / length; };
  for (index_t j = 0; j < keys; ++j) s.of_keys->push_back(id(j) % 7 == 6 ? id(j) + 1 : id(j));
  for (index_t i = 0; i < queries; ++i) s.of_queries->push_back(id(i + keys - queries));
  for (index_t i = 1; i < queries; ++i)
    (*s.of_queries)[std::size_t(i)] = std::max((*s.of_queries)[std::size_t(i)], (*s.of_queries)[std::size_t(i - 1)]);
  s.value = s.value.within(*s.of_queries, *s.of_keys);
  s.sees = [rule = s.sees, q = s.of_queries, k = s.of_keys](index_t i, index_t j) {
    return rule(i, j) && (*q)[std::size_t(i)] == (*k)[std::size_t(j)];
  };
  return s;
}

inline std::vector<sight> all_sights(index_t queries, index_t keys) {
  index_t const offset = keys - queries;
  auto const causal_window = [=](index_t width) {
    return sight{"causal window " + std::to_string(width), sorted::visibility::causal_window(width),
                 [=](index_t i, index_t j) { return j <= i + offset && i + offset - j < width; }};
  };
  auto const window = [=](index_t radius) {
    return sight{"window " + std::to_string(radius), sorted::visibility::window(radius),
                 [=](index_t i, index_t j) { return std::abs(i + offset - j) <= radius; }};
  };
  sight const full{"full", sorted::visibility::full, [](index_t, index_t) { return true; }};
  sight const causal{"causal", sorted::visibility::causal, [=](index_t i, index_t j) { return j <= i + offset; }};
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
