// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Cases that one registry entry computes: attention, grouped heads, conventions.
#include <algorithm>

#include "plan.hpp"
#include "runner.hpp"

namespace attune::golden {
namespace {

using instances::array;
using instances::backend;
using instances::problem;
using instances::result;

array filled(std::vector<index> shape, double value) {
  std::size_t size = 1;
  for (index extent : shape) size *= static_cast<std::size_t>(extent);
  return {std::move(shape), std::vector<double>(size, value)};
}

/// The same weights, applied to the identity instead of v: row i of the output is row i of the weights, exactly, because
/// each entry is one weight times 1 plus zeros. For executors that never form the weights.
array weights_by_identity(instances::entry const& entry, problem p, backend executor) {
  index const heads = p.tensors.at("v").shape.at(1), keys = p.tensors.at("v").shape.at(2);
  array identity = filled({1, heads, keys, keys}, 0);
  for (index h = 0; h < heads; ++h)
    for (index j = 0; j < keys; ++j) identity.data[static_cast<std::size_t>((h * keys + j) * keys + j)] = 1;
  p.tensors["v"] = std::move(identity);
  if (entry.has_ground_value) p.tensors["v0"] = filled({1, 1, 1, keys}, 0);
  return entry.run(p, executor, {}).out;
}

/// Rows with at least one visible key; empty if every key is visible everywhere.
std::vector<bool> non_empty_rows(problem const& p) {
  std::vector<bool> rows;
  if (p.visible.empty()) return rows;
  index const keys = p.visible_shape.back();
  for (auto row = p.visible.begin(); row != p.visible.end(); row += keys)
    rows.push_back(std::any_of(row, row + keys, [](std::uint8_t x) { return x != 0; }));
  return rows;
}

/// Some operators state a per-row output for the non-empty rows only (cases/README.md, section 3).
std::vector<double> drop_empty_rows(std::vector<double> values, problem const& p, std::size_t expected_size) {
  auto const rows = non_empty_rows(p);
  auto const kept = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), true));
  if (values.size() != rows.size() || expected_size != kept || kept == rows.size()) return values;
  std::vector<double> result;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i]) result.push_back(values[i]);
  return result;
}

/// Shape without axes of extent 1, which the golden files and the registry place differently.
std::vector<index> squeezed(std::vector<index> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

/// The output of an operator that the golden files call `name`, if it has one. A tensor of a later operator (rowsum, tau,
/// support, alpha_ma_new) becomes a line here when the registry provides it.
std::optional<array> output(std::string const& name, instances::entry const& entry, result const& r, problem const& p,
                            backend executor) {
  if (name == "o") return r.out;
  if (name == "lse" && entry.has_lse) return r.lse;
  if (name == "w0" && entry.has_ground_weight) return r.ground_weight;
  if (name == "w") return r.weights.empty() ? weights_by_identity(entry, p, executor) : r.weights;
  return std::nullopt;
}

/// S of README.md section 2, from the executor whose results have to be exact: one that is wrong cannot loosen its own bounds.
double exact_logit_magnitude(instances::entry const& entry, problem const& p) {
  return logit_magnitude(entry.run(p, backend::reference_50, {}).logits.data);
}

}  // namespace

outcome run_attention(golden_case const& c, registry const& operators, backend executor) {
  choice const chosen = choose(c);
  if (!chosen.unavailable.empty()) return skip(chosen.unavailable);
  auto const found = operators.find(chosen.entry);
  if (found == operators.end()) return skip("no " + chosen.entry);
  instances::entry const& entry = found->second;

  auto const problems = make_problems(c);
  if (executor == backend::cpu_float && !representable_in_float(c)) {
    outcome passed;
    passed.why = "inputs are no floats";
    return passed;
  }
  checker checks(c, magnitude_of(c, exact_logit_magnitude(entry, problems.front())), accuracy_of(executor));
  for (problem const& p : problems) {
    result const r = entry.run(p, executor, {});
    for (auto const& [name, expected] : forward_expectations(c)) {
      std::optional<array> const got = output(name, entry, r, p, executor);
      if (!got) {
        checks.check(name, expected, std::nullopt);
        continue;
      }
      auto const values = drop_empty_rows(got->data, p, expected.data.size());
      if (values.size() == got->data.size() && squeezed(got->shape) != squeezed(expected.shape))
        checks.fail(name + ": shape differs from the expected one");
      else
        checks.check(name, expected, values);
    }
  }
  return checks.result();
}

}  // namespace attune::golden
