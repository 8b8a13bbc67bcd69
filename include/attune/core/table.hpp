// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a table is a learned tensor of a policy: x(batch, head, row, column), axes of extent 1 broadcast
//
// The learned tensors of a policy, in addition to its single numbers: a bias table, a metric, relative position
// vectors.
#pragma once

#include <string_view>

#include <attune/core/stored_view.hpp>

namespace attune {

/// A view (1|B, 1|H, rows, columns) of float or double numbers that must outlive the operator. Entries must be finite.
struct table {
  constexpr table() = default;
  /// From a view of either number type.
  constexpr table(stored_view view) : view_(view) {}
  /// From a view of double numbers.
  constexpr table(tensor<double const> view) : view_(view) {}
  /// From a view of float numbers.
  constexpr table(tensor<float const> view) : view_(view) {}
  /// From a view of mutable double numbers.
  constexpr table(tensor<double> view) : view_(view) {}
  /// From a view of mutable float numbers.
  constexpr table(tensor<float> view) : view_(view) {}

  /// False for a default-constructed table: a call of an operator with it throws attune::error.
  ATTUNE_HD constexpr bool is_set() const { return !view_.absent(); }
  /// (1|B, 1|H, rows, columns).
  ATTUNE_HD constexpr shape const& extents() const { return view_.extents(); }
  /// Number of rows.
  ATTUNE_HD constexpr index_t rows() const { return view_.extents().position; }
  /// Number of columns.
  ATTUNE_HD constexpr index_t columns() const { return view_.extents().feature; }
  /// Row i, column d for batch element b and head h. The indices are not checked.
  ATTUNE_HD constexpr double operator()(index_t b, index_t h, index_t i, index_t d) const { return view_(b, h, i, d); }
  /// Number of this table in its operator; -1: belongs to no operator.
  ATTUNE_HD constexpr int number() const { return number_; }
  /// Sets that number.
  constexpr void number(int n) { number_ = n; }
  /// The numbers, without their place in an operator.
  ATTUNE_HD constexpr stored_view const& view() const { return view_; }
  /// The number of entry (0, 0) among all entries that `bind` of an operator's policies reads; -1: not one of them.
  ATTUNE_HD constexpr int first_entry() const { return first_entry_; }
  /// Sets that number.
  constexpr void first_entry(int n) { first_entry_ = n; }

 private:
  stored_view view_;
  int number_ = -1, first_entry_ = -1;
};

/// The columns that a policy expects in one of its tables.
enum class table_width {
  any,
  one,        ///< a bias per row
  query,      ///< D, the width of q
  query_row,  ///< D, in a single row
};

/// Who reads a table of a policy.
enum class table_use {
  contraction,  ///< a contraction that the policy names
  bind,         ///< the policy itself: row.entries(table) in `bind`
};

/// How a policy lists one of its tables: `static constexpr auto tables() { return std::array{listed("metric",
/// &P::metric)}; }`
template <class Policy>
struct listed_table {
  char const* name;        ///< the name in error messages and directions
  table Policy::* member;  ///< the member of the policy
  table_width width;       ///< the columns that it must have
  table_use use;           ///< who reads it
};
/// One entry of the list that a policy returns from tables().
template <class Policy>
constexpr listed_table<Policy> listed(char const* name, table Policy::* member, table_width width,
                                      table_use use = table_use::contraction) {
  return {name, member, width, use};
}

namespace detail {

/// Throws unless the table fits the problem. Entries in device memory are not read.
inline void check_table(char const* function, std::string_view name, table const& x, table_width width, index_t batch,
                        index_t heads, index_t query_width, memory_kind where = memory_kind::host) {
  if (!x.is_set()) throw error(function, text("table ", name), "no data", "a view (1 or B, 1 or H, rows, columns)");
  shape const e = x.extents();
  bool const as_query = width == table_width::query || width == table_width::query_row;
  index_t const columns = width == table_width::one ? 1 : as_query ? query_width : e.feature;
  if (width == table_width::query_row && e.position != 1)
    throw error(function, text("table ", name), text(e.position, " rows"), "1");
  if ((e.batch != 1 && e.batch != batch) || (e.head != 1 && e.head != heads) || e.feature != columns || e.position < 1)
    throw error(function, text("table ", name), text("shape ", to_string(e)),
                text("(1 or ", batch, ", 1 or ", heads, ", at least 1, ", columns, ")"));
  if (where == memory_kind::device) return;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d)
          if (double const v = x(b, h, i, d); !(v - v == 0))
            throw error(function, text("table ", name),
                        text("the value ", v, " at (", b, ", ", h, ", ", i, ", ", d, ")"), "finite numbers");
}

}  // namespace detail
}  // namespace attune
