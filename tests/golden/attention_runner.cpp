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

/// The same weights, applied to the identity instead of v and without gates of values and outputs: row i of the output
/// is row i of the weights, exactly, because each entry is one weight times 1 plus zeros. For executors that never form
/// the weights.
array weights_by_identity(instances::entry const& ungated, problem p, backend executor) {
  index const heads = p.tensors.at("v").shape.at(1), keys = p.tensors.at("v").shape.at(2);
  array identity = filled({1, heads, keys, keys}, 0);
  for (index h = 0; h < heads; ++h)
    for (index j = 0; j < keys; ++j) identity.data[static_cast<std::size_t>((h * keys + j) * keys + j)] = 1;
  p.tensors["v"] = std::move(identity);
  p.tensors.erase("output_gate");
  if (ungated.has_ground_value) p.tensors["v0"] = filled({1, 1, 1, keys}, 0);
  return ungated.run(p, executor, {}).out;
}

/// Row by row of the weights; nothing if there are none.
template <class Reduce>
array per_row(array const& weights, Reduce const& reduce) {
  if (weights.empty()) return {};
  array r{{weights.shape.begin(), weights.shape.end() - 1}, {}};
  auto const keys = static_cast<std::size_t>(weights.shape.back());
  for (std::size_t begin = 0; begin < weights.data.size(); begin += keys) {
    double all = 0;
    for (std::size_t j = begin; j < begin + keys; ++j) all += reduce(weights.data[j]);
    r.data.push_back(all);
  }
  return r;
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

/// A run of an operator and, where the operator has a post stage, the operator without it.
struct attention_run {
  instances::entry const& entry;
  instances::entry const& ungated;
  problem const& p;
  backend executor;
  result r;

  array weights() const { return r.weights.empty() ? weights_by_identity(ungated, p, executor) : r.weights; }
};

/// The output of an operator that the golden files call `name`, if it has one.
std::optional<array> output(std::string const& name, attention_run const& run) {
  result const& r = run.r;
  if (name == "o") return r.out;
  if (name == "lse" && run.entry.has_lse) return r.lse;
  if (name == "w0" && run.entry.has_ground_weight) return r.ground_weight;
  if (name == "tau" && run.entry.has_threshold) return r.threshold;
  if (name == "alpha_ma_new" && !r.average.empty()) return r.average;
  if (name == "w") return run.weights();
  if (name == "support") return per_row(run.weights(), [](double w) { return w != 0 ? 1. : 0.; });
  if (name == "rowsum") return r.row_sum.empty() ? per_row(run.weights(), [](double w) { return w; }) : r.row_sum;
  return std::nullopt;
}

/// All gradients that a case lists.
void check_gradients(golden_case const& c, instances::entry const& entry, problem const& p, backend executor,
                     checker& checks) {
  if (c.grads.empty()) return;
  auto const& cotangent = c.inputs.at("do");
  auto const got = entry.vjp(p, executor, {with_axes(cotangent.shape, cotangent.data, 4), {}, {}}, {});
  for (auto const& name : c.grads) {
    auto const found = got.find(gradient_target(c, name.substr(2)));
    tensor const& expected = c.expected.at(name);
    checks.check(name, expected, found == got.end() ? std::nullopt : std::optional(found->second.data));
  }
}

/// S of README.md section 2, from the executor whose results have to be exact: one that is wrong cannot loosen its own
/// bounds.
double exact_logit_magnitude(golden_case const& c, instances::entry const& entry, problem const& p) {
  auto logits = entry.run(p, backend::reference_50, {}).logits.data;
  if (text_param(c, "normalizer") == "sliced_relu")
    for (double& a : logits) a = std::max(a, 0.0);  // there it is the rectified differences
  return logit_magnitude(logits);
}

}  // namespace

outcome run_attention(golden_case const& c, registry const& operators, backend executor) {
  choice const chosen = choose(c);
  if (!chosen.unavailable.empty()) return skip(chosen.unavailable);
  auto const found = operators.find(chosen.entry);
  if (found == operators.end()) return skip("no " + chosen.entry);
  instances::entry const& entry = found->second;
  auto const ungated = operators.find(chosen.ungated);
  if (ungated == operators.end()) return skip("no " + chosen.ungated);

  auto const problems = make_problems(c);
  if (executor == backend::cpu_float && !representable_in_float(c)) {
    outcome passed;
    passed.why = "inputs are no floats";
    return passed;
  }
  checker checks(c, magnitude_of(c, exact_logit_magnitude(c, entry, problems.front())), accuracy_of(executor));
  for (problem const& p : problems) {
    attention_run const run{entry, ungated->second, p, executor, entry.run(p, executor, {})};
    for (auto const& [name, expected] : forward_expectations(c)) {
      std::optional<array> const got = output(name, run);
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
    check_gradients(c, entry, p, executor, checks);
  }
  return checks.result();
}

}  // namespace attune::golden
