// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operator of each preset of the catalogue. Parameters and tables are set afterwards, by their paths: here all of
// them are left open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <attune/operators/listing.hpp>
#include <attune/operators/presets.hpp>

#include "../catalogue/more.hpp"
#include "../catalogue/presets.hpp"
#include "aligned_mask.hpp"
#include "problem.hpp"

namespace attune::tool {

/// Constants and arrays that are no parameters; constants with their defaults where the command line says nothing.
struct constants {
  std::map<std::string, long> const* given = nullptr;
  std::map<std::string, long>* asked = nullptr;  ///< what is asked for, recorded with its default
  std::map<std::string, numbers> const* arrays = nullptr;
  std::vector<std::string>* asked_arrays = nullptr;
  /// Angles of kernel::rotary, (1|B, 1, rows, 2 R): R cosines, then R sines. Query i reads row i + offset.
  rotary_rows angles(char const* name) const {
    if (asked_arrays != nullptr) asked_arrays->push_back(name);
    if (arrays == nullptr || arrays->count(name) == 0) return {};
    numbers const& x = arrays->at(name);
    return rotary_rows(stored_view(tensor<double const>(x.doubles.data(), x.extents)));
  }
  long operator()(char const* name, long fallback) const {
    if (asked != nullptr) asked->emplace(name, fallback);
    if (given == nullptr) return fallback;
    auto const found = given->find(name);
    return found == given->end() ? fallback : found->second;
  }
};

template <class Make>
struct recipe {
  char const* name;
  Make make;  ///< (constants, mask) -> operator
};
template <class Make>
recipe(char const*, Make) -> recipe<Make>;

namespace recipes {

using mask_type = aligned_mask;
inline parameter const open{};  ///< to be set

#define ATTUNE_RECIPE(name, call, policies, names, note, operator_, ...) \
  inline auto const name = recipe{#name, []([[maybe_unused]] constants const& c, mask_type m) { return operator_; }};
ATTUNE_PRESETS(ATTUNE_RECIPE)
ATTUNE_MORE(ATTUNE_RECIPE)
#undef ATTUNE_RECIPE

}  // namespace recipes

/// The recipe's operator with the parameters and tables of `set` at their paths: set(path, parameter&), set(path,
/// table&).
template <class Make, class SetParameter, class SetTable>
auto cooked(recipe<Make> const& from, constants const& c, aligned_mask const& m, SetParameter const& parameter_of,
            SetTable const& table_of) {
  auto op = from.make(c, m);
  // the lists show members of `op`, which is no constant: to write through them is what it is for here.
  for (operator_parameter const& p : listed_parameters(op)) parameter_of(p.path(), p, const_cast<parameter&>(*p.at));
  for (operator_table const& x : listed_tables(op)) table_of(x.path(), x, const_cast<table&>(*x.at));
  return op;
}

}  // namespace attune::tool
