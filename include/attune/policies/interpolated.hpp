// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   z_ij = (1 - f) z_i[n] + f z_i[n + 1],    n = floor(y), f = y - n,    y = an ordered sum y_ij, clamped to [0, P - 1]
//
// A row of P numbers of the query, the input `position_scores`, read at a fractional index. An ordered sum
// (policies/ordered_sum.hpp) gives the index. A kernel that names it gets x_ij, y_ij and z_ij: score(x, y, z, key).
#pragma once

#include <attune/policies/ordered_sum.hpp>

namespace attune {

namespace contraction {

/// Row i of position_scores (1|B, 1|H, 1|Lq, P), P > 0, at the index that the ordered sum S gives, between two entries
/// on a line.
/// Index:       below 0 it counts as 0, above P - 1 as P - 1; NaN gives NaN. At an integer the value is the entry
///              itself, and no other entry is read.
/// Derivatives: by the index the slope of its segment, and at an integer the slope on its right; 0 below 0 and from
///              P - 1 on. By the row 1 - f and f.
/// Complexity:  two entries of the row per pair.
/// Source:      Golovneva et al. 2024, Contextual Position Encoding (CoPE), arXiv:2405.18719.
template <class S>
struct interpolated {
  static_assert(is_ordered<S>,
                "attune: contraction::interpolated<S> reads a row at the index that an ordered sum S gives: name one, "
                "such as contraction::later_sum<contraction::dot, F>. See "
                "docs/reference/policies.md#a-row-read-at-an-index");
  using interpolated_type = interpolated;              ///< marks an interpolated row for executors
  using index = S;                                     ///< y
  static constexpr field of = field::position_scores;  ///< the input with the rows
  using x = no_operand;                                ///< has no operand of a term
  using y = no_operand;                                ///< has no operand of a term
  using z = no_operand;                                ///< has no operand of a term
  static constexpr int operands = 0;                   ///< none: the value comes from the index and the row
  /// Whether the index or the row reads the input f.
  ATTUNE_HD static constexpr bool uses(field f) { return f == of || S::uses(f); }
};

/// The list has an interpolated row.
template <class List>
inline constexpr bool has_interpolated = false;
template <class... C>
inline constexpr bool has_interpolated<list<C...>> = (false || ... || is_interpolated<C>);
/// The number of interpolated rows in a list.
template <class List>
inline constexpr int interpolated_count = 0;
template <class... C>
inline constexpr int interpolated_count<list<C...>> = (0 + ... + int(is_interpolated<C>));

/// The number of the ordered sum that gives the index of interpolated row number Index of a list; -1 if none does.
template <class List, int Index>
inline constexpr int index_of = -1;
template <class... C, int Index>
inline constexpr int index_of<list<C...>, Index> =
    detail::last_before<typename element<list<C...>, Index>::type::index, C...>(Index);

namespace detail {
template <class List, int Index, class Visit>
ATTUNE_HD constexpr void visit_if_interpolated([[maybe_unused]] Visit const& visit) {
  using C = typename element<List, Index>::type;
  if constexpr (is_interpolated<C>)
    visit(C{}, std::integral_constant<int, Index>{}, std::integral_constant<int, index_of<List, Index>>{});
}
template <class List, class Visit, int... Index>
ATTUNE_HD constexpr void visit_each_interpolated(Visit const& visit, std::integer_sequence<int, Index...>) {
  (..., detail::visit_if_interpolated<List, Index>(visit));
}
}  // namespace detail
/// Calls visit(the interpolated row, its number, the number of the sum that gives its index) for each interpolated row
/// of a list. The numbers are integral constants.
template <class List, class Visit>
ATTUNE_HD constexpr void each_interpolated(Visit const& visit) {
  detail::visit_each_interpolated<List>(visit, std::make_integer_sequence<int, List::size>{});
}
/// The number of the sum that gives the index of interpolated row number n of a list; -1 for any other number.
template <class List>
ATTUNE_HD constexpr int index_number(int n) {
  int found = -1;
  contraction::each_interpolated<List>(
      [&](auto, auto index, auto source) { found = decltype(index)::value == n ? decltype(source)::value : found; });
  return found;
}
/// Each interpolated row of a list comes after the sum that gives its index.
template <class List>
constexpr bool has_indices() {
  bool found = true;
  contraction::each_interpolated<List>([&](auto, auto, auto source) { found = found && decltype(source)::value >= 0; });
  return found;
}

}  // namespace contraction

/// The operator reads a row at an index.
template <class Op>
inline constexpr bool has_interpolated_rows = contraction::has_interpolated<typename Op::contractions>;

}  // namespace attune
