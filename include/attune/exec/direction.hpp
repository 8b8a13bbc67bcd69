// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   {.parameters = {{"gamma", 1.0}}, .tables = {{"metric", dM}}}
//       the direction in which the parameters and tables of an operator move
#pragma once

#include <string>
#include <vector>

#include <attune/core/dual.hpp>
#include <attune/operators/listing.hpp>

namespace attune {

/// The direction in which the parameters and tables of a call move, by name or path as in dense_gradients. Unlisted
/// ones do not move. A direction has the granularity of its parameter, or is one number.
struct policy_direction {
  /// The direction of one parameter.
  struct of_parameter {
    std::string name;  ///< "gamma", or its path, "normalizer.gamma"
    parameter along;   ///< one number, or an array with the shape of the parameter
  };
  /// The direction of one table.
  struct of_table {
    std::string name;  ///< "metric", or its path, "kernel.metric"
    table along;       ///< with the shape of the table
  };
  std::vector<of_parameter> parameters = {};  ///< those that move
  std::vector<of_table> tables = {};          ///< those that move
};

namespace detail {

/// Throws unless a direction is absent or has the shape of its tensor.
template <class View>
void check_direction(char const* function, char const* name, View const& value, View const& along) {
  if (!along.absent() && !(along.extents() == value.extents()))
    throw error(function, attune::detail::text("the direction of ", name),
                attune::detail::text("shape ", to_string(along.extents())),
                attune::detail::text(to_string(value.extents()), ", the shape of the tensor"));
}

/// A direction for every parameter and table of the operator; unset for those that do not move.
template <class T>
struct moving_numbers {
  std::vector<parameter> along;
  std::vector<table> tables_along;

  template <class Op>
  moving_numbers(Op const& op, policy_direction const& direction) {
    std::vector<bool> used_parameters(direction.parameters.size()), used_tables(direction.tables.size());
    for (operator_parameter const& p : listed_parameters(op)) {
      parameter& to = along.emplace_back();
      for (std::size_t n = 0; n < direction.parameters.size(); ++n)
        if (is_called(p.path(), direction.parameters[n].name)) {
          shape const wanted = p.at->extents(), got = direction.parameters[n].along.extents();
          if (!(got == wanted) && got.size() != 1)
            throw error("jvp", attune::detail::text("the direction of parameter ", p.path()),
                        attune::detail::text("shape ", to_string(got)),
                        attune::detail::text(to_string(wanted), ", that of the parameter, or one number"));
          to = direction.parameters[n].along;
          used_parameters[n] = true;
        }
    }
    for (operator_table const& x : listed_tables(op)) {
      table& to = tables_along.emplace_back();
      for (std::size_t n = 0; n < direction.tables.size(); ++n)
        if (is_called(x.path(), direction.tables[n].name)) {
          shape const wanted = x.at->extents(), got = direction.tables[n].along.extents();
          if (!(got == wanted))
            throw error("jvp", attune::detail::text("the direction of table ", x.path()),
                        attune::detail::text("shape ", to_string(got)), to_string(wanted));
          to = direction.tables[n].along;
          used_tables[n] = true;
        }
    }
    for (std::size_t n = 0; n < used_parameters.size(); ++n)
      if (!used_parameters[n])
        throw error("jvp", "direction.parameters", attune::detail::text("the name ", direction.parameters[n].name),
                    "a parameter of the operator");
    for (std::size_t n = 0; n < used_tables.size(); ++n)
      if (!used_tables[n])
        throw error("jvp", "direction.tables", attune::detail::text("the name ", direction.tables[n].name),
                    "a table of the operator");
  }
  lift<dual<T, 1>> numbers() const {
    return {{}, {0, int(along.size()), 0, along.data(), tables_along.empty() ? nullptr : tables_along.data()}};
  }
};

}  // namespace detail
}  // namespace attune
