// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json (cases/README.md, section 9), by the functions of attune/analysis in the scalar of each executor.
#include <set>

#include "diagnostics.hpp"
#include "plan.hpp"

namespace attune::golden {
namespace {

struct expected_form {
  std::set<std::string> inputs, optional, params;
};

std::map<std::string, expected_form> const& forms() {
  static std::map<std::string, expected_form> const known{
      {"entropy", {{"w"}, {}, {}}},
      {"jacobian_softmax", {{"l", "T"}, {}, {}}},
      {"jacobian_general", {{"l", "T"}, {}, {"F", "c"}}},
      {"cor1_bounds", {{"q", "k", "T"}, {}, {}}},
      {"distance_theorem1", {{"alpha", "x"}, {}, {"N"}}},
      {"geometric_theorem2", {{"alpha", "x", "M", "delta"}, {"r"}, {"N"}}},
      {"finite_difference_jacobian", {{"l", "dl", "T", "eps"}, {}, {}}},
      {"ks_two_sample", {{"a", "b"}, {}, {"alpha"}}},
      {"grad_norm_stats", {{"g"}, {}, {"k"}}},
      {"maxent", {{"z", "q", "T"}, {}, {}}},
      {"rbf_identity", {{"q", "k", "T", "c"}, {}, {}}},
      {"implicit_kernel", {{"q", "k"}, {}, {}}},
      {"grouping_stability", {{"q", "kh", "kg", "T"}, {}, {}}},
      {"product_of_experts", {{"s_dot", "s_rbf"}, {}, {}}},
      {"length_scaling_law", {{"gap", "ss", "alpha"}, {}, {"K"}}},
      {"head_coverage", {{"p"}, {}, {"H", "target"}}},
      {"primitives", {{"x"}, {}, {}}}};
  return known;
}

/// Nothing of a case may be ignored, nothing may be missing.
void check_form(golden_case const& c) {
  expected_form const& form = forms().at(c.operation);
  for (auto const& name : form.inputs)
    if (c.inputs.count(name) == 0) throw unplannable("has no input " + name);
  for (auto const& [name, ignored] : c.inputs)
    if (form.inputs.count(name) + form.optional.count(name) == 0) throw unplannable("has the unknown input " + name);
  for (auto const& name : form.params)
    if (!c.params.contains(name)) throw unplannable("has no parameter " + name);
  for (auto const& [name, ignored] : c.params.items())
    if (form.params.count(name) == 0) throw unplannable("has the unknown parameter " + name);
}

}  // namespace

bool is_diagnostic(golden_case const& c) { return forms().count(c.operation) != 0; }

outcome run_diagnostics(golden_case const& c, registry const&, instances::backend executor) {
  check_form(c);
  if (executor == instances::backend::cpu_float && !representable_in_float(c)) {
    outcome passed;
    passed.why = "inputs are no floats";
    return passed;
  }
  results got;
  for (auto const diagnose : {diagnose_row, diagnose_selection, diagnose_jacobian})
    if (got.empty()) got = diagnose(c, executor);
  return compared(c, got, 1, executor);
}

}  // namespace attune::golden
