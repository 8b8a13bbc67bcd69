// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   listed("hidden", &fire::hidden, table_width::any, table_use::bind)      bind reads rows of it: row.entries(hidden)
//
// The tables that `bind` reads itself, in the order in which an operator lists them. Their entries have numbers. A
// gradient by them takes several passes over the pairs, each with a few entries as the directions of dual numbers: an
// operator without such tables does not know of it.
#pragma once

#include <span>

#include <attune/operators/listing.hpp>

namespace attune::detail {

/// How many entries are directions of one pass.
inline constexpr int entries_at_once = 8;

/// The number of entries in a table.
inline index_t entries_of(operator_table const& x) {
  return x.use == table_use::bind ? x.at->rows() * x.at->columns() : 0;
}
/// Numbers the entries of the tables that `bind` reads. Returns how many there are. The caller must be allowed to
/// change the listed operator.
inline int number_entries(std::span<operator_table const> tables) {
  index_t next = 0;
  for (operator_table const& x : tables)
    if (x.use == table_use::bind) {
      const_cast<table&>(*x.at).first_entry(int(next));
      next += entries_of(x);
    }
  return int(next);
}

}  // namespace attune::detail
