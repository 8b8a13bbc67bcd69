// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row of the pair (i, j) = Table::row(policy, i + offset, j)
//
// The rows that pairs read in a table with a row for each pair. Only visible pairs need a row. Executors also look
// up pairs that no query sees; there any number is allowed.
#pragma once

#include <string>

#include <attune/core/error.hpp>
#include <attune/exec/problem_shape.hpp>

namespace attune::detail {

/// The row that a pair reads in its table; -1 if the table has no such row.
template <class Operand, class Owner>
ATTUNE_HD index_t pair_row(Owner const& owner, index_t position, index_t key) {
  index_t const n = Operand::table_of::row(owner, position, key);
  return n >= 0 && n < Operand::table_of::of(owner).rows() ? n : -1;
}

/// Throws unless the table has a row for every visible pair. `path`: of the table, for the error. A query whose pairs
/// all have a row, visible or not, is not looked up in the mask. Cost: Lq Lk rows, once for each different offset; and
/// for each other query its visible pairs, once per batch element and head.
template <class Operand, class Owner, class Mask>
void check_pair_rows(char const* function, Owner const& owner, std::string const& path, Mask const& mask,
                     problem_shape const& p) {
  index_t const rows = Operand::table_of::of(owner).rows();
  auto const check_row = [&](mask_row const& r) {
    for (key_interval k = mask::next(mask, r, 0); !k.empty(); k = mask::next(mask, r, k.last))
      for (index_t j = k.first; j < k.last; ++j)
        if (detail::pair_row<Operand>(owner, r.position, j) < 0)
          throw error(function, text("index(", r.position, ", ", j, ") of the policy with table ", path),
                      text("the row ", Operand::table_of::row(owner, r.position, j)),
                      text("a row of the table, in [0, ", rows, "): key ", j, " is visible to query ", r.query));
  };
  auto const every_pair = [&](index_t position) {
    bool every = true;
    for (index_t j = 0; j < p.keys; ++j) every = every & (detail::pair_row<Operand>(owner, position, j) >= 0);
    return every;
  };
  for (index_t i = 0; i < p.queries; ++i) {
    bool every = false;
    for (index_t b = 0; b < p.batch; ++b) {
      if (b == 0 || p.offset_of(b) != p.offset_of(b - 1)) every = every_pair(i + p.offset_of(b));
      if (every) continue;
      for (index_t h = 0; h < p.heads; ++h) check_row(p.row(b, h, i));
    }
  }
}

}  // namespace attune::detail
