// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A mask against a brute-force statement of its rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <attune/policies/mask/concepts.hpp>

#include "../../check.hpp"

namespace attune::test {

/// The first difference between what mask functions say of a row and what rule(row, j) says; "" if there is none.
template <class Mask, class Rule>
std::string row_differs(Mask const& m, Rule const& rule, mask_row const& r) {
  std::vector<bool> sees(std::size_t(r.keys));
  for (index_t j = 0; j < r.keys; ++j) sees[std::size_t(j)] = rule(r, j);
  auto const seen = [&](index_t j) { return j < r.keys && sees[std::size_t(j)]; };
  auto const where = [&](char const* what, index_t at) {
    return detail::text(what, at, " of query ", r.query, " at position ", r.position, ", Lq ", r.queries, ", Lk ",
                        r.keys, ", batch ", r.batch, ", head ", r.head);
  };
  index_t count = 0;
  for (index_t j = 0; j < r.keys; ++j) {
    count += seen(j);
    if (mask::sees(m, r, j) != seen(j)) return where("sees: key ", j);
  }
  if (mask::count(m, r) != count) return where("count ", mask::count(m, r));
  for (index_t from = -2; from <= r.keys + 2; ++from) {  // next: the first maximal stretch at or after `from`
    key_interval expected{from < 0 ? 0 : from, 0};
    while (expected.first < r.keys && !seen(expected.first)) ++expected.first;
    expected.last = expected.first;
    while (seen(expected.last)) ++expected.last;
    key_interval const got = mask::next(m, r, from);
    if (expected.empty() ? !got.empty() : !(got == expected)) return where("next from ", from);
  }
  return {};
}

/// All rows of one call.
template <class Mask, class Rule>
std::string call_differs(Mask const& m, Rule const& rule, mask_shape const& s, std::optional<index_t> offset = {}) {
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.heads; ++h)
      for (index_t i = 0; i < s.queries; ++i) {
        mask_row const r{b, h, i, i + offset.value_or(s.keys - s.queries), s.queries, s.keys};
        if (std::string const d = row_differs(m, rule, r); !d.empty()) return d;
      }
  return {};
}

/// A mask without arrays on calls of many extents: more queries than keys and fewer, no keys, offsets on both sides.
template <class Mask, class Rule>
void follows(Mask const& m, Rule const& rule) {
  for (auto const& [queries, keys] : {std::pair<index_t, index_t>{1, 1}, {1, 9}, {5, 5}, {3, 8}, {8, 3}, {6, 0}})
    for (std::optional<index_t> offset : {std::optional<index_t>{}, {0}, {2}, {-3}, {20}, {-20}})
      CHECK(call_differs(m, rule, {1, 1, queries, keys}, offset) == "");
}

/// The text of what check() throws.
template <class Mask>
std::string rejects(Mask const& m, mask_shape const& s) {
  return error_of([&] { mask::check(m, s); });
}

}  // namespace attune::test
