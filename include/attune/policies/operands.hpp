// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   of_query<field::q>, of_key<field::k>, of_pair<field::bias>, by_feature<tables::metric>
//
// The operands of contractions: inputs, and tables of the policy that names the contraction.
#pragma once

#include <attune/core/table.hpp>
#include <attune/policies/fields.hpp>

namespace attune::contraction {

/// Where an operand lives.
enum class operand_side { none, query, key, pair, table };
/// Which entry of a table a pair at distance i + offset - j reads at feature d.
enum class table_place {
  column,       ///< (0, d): the same for all pairs
  row,          ///< (d, 0): the same for all pairs
  of_distance,  ///< a row for each distance, column d
  of_pair,      ///< a row for each pair, column d
  of_key,       ///< row j, column d
};

/// An operand that is absent.
struct no_operand {
  static constexpr operand_side side = operand_side::none;  ///< no tensor
};
/// The input F as an operand. `Side` must be the side that the table in policies/fields.hpp gives it.
template <operand_side Side, field F>
struct input_operand {
  static_assert(
      side_of(F) == (Side == operand_side::query ? input_side::query
                     : Side == operand_side::key ? input_side::key
                                                 : input_side::pair),
      "attune: this input is of another side: of_query, of_key or of_pair as <attune/policies/fields.hpp> says");
  static_assert(F != field::v && F != field::value_gate && F != field::output_gate,
                "attune: values and their gates are no operands of a contraction: scores do not depend on them");
  static_assert(F != field::position_scores,
                "attune: position_scores is no operand of a term: contraction::interpolated reads it at an index");
  static constexpr operand_side side = Side;  ///< query, key or pair
  static constexpr field of = F;              ///< the input
};
/// An input of the query: F(i, d).
template <field F>
using of_query = input_operand<operand_side::query, F>;
/// An input of the key: F(j, d).
template <field F>
using of_key = input_operand<operand_side::key, F>;
/// An input of the pair: F(i, j).
template <field F>
using of_pair = input_operand<operand_side::pair, F>;
/// Table::of(policy) is the table. Table::row(policy, distance) is its row, for tables with a row per distance.
template <class Table, table_place Place>
struct table_operand {
  static constexpr operand_side side = operand_side::table;  ///< a table of the policy
  static constexpr table_place place = Place;                ///< the entry that a pair reads
  using table_of = Table;                                    ///< finds the table in the policy
};
/// Entry (0, d) of a table: one number per feature.
template <class Table>
using by_feature = table_operand<Table, table_place::column>;
/// Entry (d, 0) of a table: one number per term of the sum.
template <class Table>
using by_term = table_operand<Table, table_place::row>;
/// Column d of the row that belongs to the distance of the pair.
template <class Table>
using by_distance = table_operand<Table, table_place::of_distance>;
/// Column d of the row that belongs to the pair: Table::row(policy, i + offset, j).
template <class Table>
using by_pair = table_operand<Table, table_place::of_pair>;
/// Column d of row j: the table has a row for each of the Lk keys.
template <class Table>
using by_key = table_operand<Table, table_place::of_key>;

/// The tables that the contractions below read: members of the policy with these names.
namespace tables {
/// of(policy): the member `name` of a policy. Undefined again below.
#define ATTUNE_TABLE(name)                              \
  template <class P>                                    \
    requires requires(P const& policy) { policy.name; } \
  ATTUNE_HD static table const& of(P const& policy) {   \
    return policy.name;                                 \
  }
/// One number per feature: (1|B, 1|H, 1, D).
struct metric {
  /// The table `metric` of a policy.
  ATTUNE_TABLE(metric)
};
/// One number per feature, added to the query: (1|B, 1|H, 1, D).
struct bias {
  /// The table `bias` of a policy.
  ATTUNE_TABLE(bias)
};
/// The factor of each cosine: (1|B, 1|H, R, 1).
struct cosine {
  /// The table `cosine` of a policy.
  ATTUNE_TABLE(cosine)
};
/// The factor of each sine: (1|B, 1|H, R, 1).
struct sine {
  /// The table `sine` of a policy.
  ATTUNE_TABLE(sine)
};
/// The angular frequency of each term, in radians per position: (1|B, 1|H, R, 1).
struct frequency {
  /// The table `frequency` of a policy.
  ATTUNE_TABLE(frequency)
};
/// Row floor(R / 2) belongs to distance 0.
struct relative {
  static constexpr bool rises =
      true;  ///< row() rises with the distance: a call checks only the nearest and the farthest
  /// The table `relative` of a policy.
  ATTUNE_TABLE(relative)
  /// The row for a key `distance` = i + offset - j positions before the query.
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return distance + p.relative.rows() / 2;
  }
};
/// One number per key: (1|B, 1|H, Lk, 1).
struct per_key {
  /// The table `per_key` of a policy.
  ATTUNE_TABLE(per_key)
};
/// One number per row: (1|B, 1|H, R, 1). The policy says which row belongs to a distance.
struct values {
  /// The table `values` of a policy.
  ATTUNE_TABLE(values)
  /// The row for a key `distance` = i + offset - j positions before the query: index(distance) of the policy.
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t distance) {
    return p.index(distance);
  }
  /// The row for a query at `position` = i + offset and key `key`: index(position, key) of the policy.
  template <class P>
  ATTUNE_HD static index_t row(P const& p, index_t position, index_t key) {
    return p.index(position, key);
  }
};
#undef ATTUNE_TABLE
}  // namespace tables

namespace detail {
template <class Operand>
inline constexpr bool in_table = Operand::side == operand_side::none || Operand::side == operand_side::table;
template <class Table>
inline constexpr bool in_table<by_pair<Table>> = false;  // the distance does not determine the entry
template <class Table>
inline constexpr bool in_table<by_key<Table>> = false;  // the value depends on the key, not on the distance alone
template <class Operand>
inline constexpr bool in_rows = false;
template <class Table>
inline constexpr bool in_rows<by_term<Table>> = true;
/// Both operands read the same table.
template <class A, class B>
inline constexpr bool share_table = false;
template <class Table, table_place A, table_place B>
inline constexpr bool share_table<table_operand<Table, A>, table_operand<Table, B>> = true;
}  // namespace detail

}  // namespace attune::contraction
