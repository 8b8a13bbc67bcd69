// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "runner.hpp"

#include <exception>

#include "compare.hpp"

namespace attune::golden {
namespace {

/// Cases that are computed alike.
struct family {
  outcome (*run)(golden_case const&, registry const&, instances::backend);
  bool by_operators = false;  ///< of the registry
};

/// All that is not named here is one call of one operator: run_attention skips what it does not know.
family family_of(golden_case const& c) {
  if (is_diagnostic(c)) return {run_diagnostics};
  if (is_cache_rule(c) && c.operation == "sliced_relu")
    return {run_eviction};  // kernels.json has an operator of this name
  static std::map<std::string, family> const named{{"merge_states", {run_merge_states, true}},
                                                   {"differential", {run_fold_case}},
                                                   {"fold_two", {run_fold_case}},
                                                   {"ema", {run_moving_average}},
                                                   {"rotary", {run_rotary}},
                                                   {"cope", {run_cope}},
                                                   {"l_align", {run_regularizer}},
                                                   {"l_spread", {run_regularizer}},
                                                   {"l_tau", {run_regularizer}},
                                                   {"evict_geometric", {run_eviction}},
                                                   {"density_compression", {run_eviction}},
                                                   {"sorted_window", {run_cache_rule}},
                                                   {"topk_captured_mass", {run_cache_rule}}};
  auto const found = named.find(c.operation);
  return found == named.end() ? family{run_attention, true} : found->second;
}

outcome failure(std::string const& message) {
  outcome result;
  result.result = status::failed;
  result.failures = {message};
  return result;
}

}  // namespace

accuracy accuracy_of(instances::backend executor) {
  switch (executor) {
    case instances::backend::cpu_float:
      return accuracy::binary32;
    case instances::backend::reference_50:
      return accuracy::correctly_rounded;
    case instances::backend::reference_double:
    case instances::backend::cpu_double:
      break;
  }
  return accuracy::binary64;
}

char const* executor_name(instances::backend executor) {
  switch (executor) {
    case instances::backend::reference_double:
      return "reference_double";
    case instances::backend::reference_50:
      return "reference_50";
    case instances::backend::cpu_float:
      return "cpu_float";
    case instances::backend::cpu_double:
      break;
  }
  return "cpu_double";
}

std::vector<outcome> run_case(golden_case const& c, registry const& operators,
                              std::vector<instances::backend> const& executors) {
  std::vector<outcome> result;
  for (auto const executor : executors) {
    try {
      result.push_back(family_of(c).run(c, operators, executor));
    } catch (std::exception const& error) {
      result.push_back(failure(std::string("threw: ") + error.what()));
    }
  }
  return result;
}

bool needs_no_operator(golden_case const& c) { return !family_of(c).by_operators; }

outcome compared(golden_case const& c, results const& got, double logits, instances::backend executor) {
  checker checks(c, magnitude_of(c, logits), accuracy_of(executor));
  for (auto const& [name, expected] : c.expected) {
    auto const found = got.find(name);
    checks.check(name, expected, found == got.end() ? std::nullopt : std::optional(found->second));
  }
  return checks.result();
}

void fail_skipped(std::vector<outcome>& outcomes) {
  for (outcome& o : outcomes)
    if (o.result == status::skipped) o = failure("skipped (" + o.why + ") although the operator is required");
}

outcome skip(std::string const& why) {
  outcome result;
  result.result = status::skipped;
  result.why = why;
  return result;
}

void checker::check(std::string const& name, tensor const& expected, std::optional<std::vector<double>> const& got) {
  check(name, expected, got, promised_);
}

void checker::check(std::string const& name, tensor const& expected, std::optional<std::vector<double>> const& got,
                    accuracy promised) {
  if (!got) return fail(name + ": the operator provides no such tensor");
  difference const d = compare(expected, *got, bounds(case_, name, expected, size_, promised));
  if (d.ratio > result_.worst_ratio || result_.worst_tensor.empty()) {
    result_.worst_ratio = d.ratio;
    result_.worst_tensor = name;
  }
  if (!d.accepted) fail(name + " " + describe(d, expected.shape));
}

void checker::fail(std::string const& message) {
  result_.result = status::failed;
  result_.failures.push_back(message);
}

}  // namespace attune::golden
