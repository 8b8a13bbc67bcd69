// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   materialized(op).op   the operator with every computed parameter replaced by its values
//
// A projected parameter costs C multiplications each time a row is bound. A moving average costs a pass over all values
// that it averages. Fused executors bind a row more than once, so they compute such values once per call.
#pragma once

#include <type_traits>
#include <vector>

#include <attune/operators/entries.hpp>

namespace attune::detail {

/// The values of computed parameters.
class computed_values {
 public:
  /// Replaces a computed parameter by a view of its values.
  ATTUNE_NOINLINE void freeze(parameter& p) {
    if (!p.is_projected() && !p.is_average()) return;
    shape const e = p.extents();
    std::vector<double>& numbers = values_.emplace_back();
    numbers.reserve(std::size_t(e.size()));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i) numbers.push_back(p.at(b, h, i));
    p = parameter(tensor<double const>(numbers, e));
  }

 private:
  std::vector<std::vector<double>> values_;  // the numbers keep their address when the outer vector grows
};

/// The tables that `bind` reads, as numbers of the executor, one next to the other.
template <class T>
class packed_tables {
 public:
  ATTUNE_NOINLINE void pack(table& x) {
    shape const e = x.extents();
    std::vector<T>& numbers = values_.emplace_back();
    numbers.reserve(std::size_t(e.size()));
    for (index_t b = 0; b < e.batch; ++b)
      for (index_t h = 0; h < e.head; ++h)
        for (index_t i = 0; i < e.position; ++i)
          for (index_t d = 0; d < e.feature; ++d) numbers.push_back(T(x(b, h, i, d)));
    x = table(tensor<T const>(numbers, e));
  }

 private:
  std::vector<std::vector<T>> values_;
};

/// Not copyable: the operator points into the values. T: the numbers of the executor.
template <class Op, class T>
class materialized {
 public:
  ATTUNE_NOINLINE explicit materialized(Op const& original) : op(original) {
    for (operator_parameter const& p : listed_parameters(op))
      values_.freeze(const_cast<parameter&>(*p.at));  // points into our own copy
    if constexpr (has_entries<Op>) {
      auto const tables = listed_tables(op);
      for (operator_table const& x : tables)
        if (x.use == table_use::bind) tables_.pack(const_cast<table&>(*x.at));
      number_entries(tables);
    }
    number(op);
  }
  materialized(materialized const&) = delete;
  materialized& operator=(materialized const&) = delete;

  Op op;

 private:
  struct nothing {};
  computed_values values_;
  std::conditional_t<has_entries<Op>, packed_tables<T>, nothing> tables_;
};

/// The operator itself, for calls that bind a row once and need no values computed ahead.
template <class Op>
struct given_operator {
  Op const& op;
  explicit given_operator(Op const& original) : op(original) {}
};
/// Materialized if `bind` reads tables, else as given.
template <class Op, class T>
using with_packed_tables = std::conditional_t<has_entries<Op>, materialized<Op, T>, given_operator<Op>>;

}  // namespace attune::detail
