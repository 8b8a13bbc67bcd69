// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   accepted_pairs()        every pair that the library accepts
//   pairs_of_row(r)         what a row of the design has in its type; pairs_of_problem(r, record): what a problem drew
//
// A pair is two of: an input, a contraction, a hook, a trait of rows or of masks (features), a call of an executor, and a
// fact of a drawn call (offsets, fewer heads, shared axes, layouts). Features come from the policies and from the tables
// of the library; two of them are accepted if an operator of two policies has both and attention() would compose it.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace attune::pairs {

/// Two names, in order.
using name_pair = std::pair<std::string, std::string>;
inline name_pair pair_of(std::string const& a, std::string const& b) {
  return a < b ? name_pair{a, b} : name_pair{b, a};
}
using pair_set = std::set<name_pair>;

/// A policy that rows are made of.
struct choice_facts {
  std::string text;
  int role;
  std::set<std::string> features;
};
std::vector<choice_facts> const& all_choices();
/// Whether attention() composes two of them, and the calls that accept the operator.
struct composition {
  bool composes = false;
  unsigned calls = 0;
};
/// Of choices number a and b; of one alone, if they are equal.
composition composed(std::size_t a, std::size_t b);

/// Inputs and contractions of the library that no choice has.
std::vector<std::string> features_without_choice();

/// Of features and calls: what types decide.
pair_set const& accepted_by_types();
/// The same with facts of drawn calls.
pair_set const& accepted_with_facts();

pair_set pairs_of_row(design_row const& r);
pair_set pairs_of_problem(design_row const& r, run_record const& record);

}  // namespace attune::pairs
