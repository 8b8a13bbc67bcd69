// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operator of each preset of the catalogue. Parameters and tables are set afterwards, by their paths: here all of
// them are left open.
#pragma once

#include <map>
#include <string>

#include <attune/operators/listing.hpp>
#include <attune/operators/presets.hpp>

#include "../catalogue/presets.hpp"
#include "aligned_mask.hpp"

namespace attune::tool {

/// Constants that are no parameters, with their defaults where the command line says nothing.
struct constants {
  std::map<std::string, long> const* given = nullptr;
  std::map<std::string, long>* asked = nullptr;  ///< what is asked for, recorded with its default
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
