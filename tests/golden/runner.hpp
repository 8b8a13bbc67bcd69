// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Runs golden cases on the executors of the registry and compares every expected tensor, gradients on the reference
// executors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../instances/registry.hpp"
#include "case_file.hpp"
#include "tolerance.hpp"

namespace attune::golden {

using registry = std::map<std::string, instances::entry>;

enum class status { passed, failed, skipped };

/// What became of one case on one executor.
struct outcome {
  status result = status::passed;
  std::string why;                    ///< of a skip; of a pass without a run (inputs that are no floats)
  std::vector<std::string> failures;  ///< one line per failing tensor
  double worst_ratio = 0;             ///< largest error / tolerance, and where
  std::string worst_tensor;
};

accuracy accuracy_of(instances::backend executor);

/// The spelling of an executor in options and reports: that of its enumerator.
char const* executor_name(instances::backend executor);

/// One outcome per executor, in their order. Never throws: an exception of the operator is a failure of the case.
std::vector<outcome> run_case(golden_case const& c, registry const& operators,
                              std::vector<instances::backend> const& executors);

/// Turns skips into failures, for operators that are known to be available.
void fail_skipped(std::vector<outcome>& outcomes);

/// Collects the comparisons of one case on one executor.
class checker {
 public:
  checker(golden_case const& c, magnitude const& size, accuracy promised)
      : case_(c), size_(size), promised_(promised) {}

  /// `got` absent: the operator cannot provide the tensor, which fails. `promised` overrides that of the executor.
  void check(std::string const& name, tensor const& expected, std::optional<std::vector<double>> const& got);
  void check(std::string const& name, tensor const& expected, std::optional<std::vector<double>> const& got,
             accuracy promised);

  void fail(std::string const& message);

  outcome const& result() const { return result_; }

 private:
  golden_case const& case_;
  magnitude size_;
  accuracy promised_;
  outcome result_;
};

/// Computed tensors by the names of the expectations.
using results = std::map<std::string, std::vector<double>>;

/// Every expected tensor against what was computed; `logits` is S of section 2 of cases/README.md.
outcome compared(golden_case const& c, results const& got, double logits, instances::backend executor);

/// Whether the family of a case is computed without the registry.
bool needs_no_operator(golden_case const& c);

// The runners of the families, for one executor. They throw; run_case turns that into failures.

/// Every case that one registry entry computes.
outcome run_attention(golden_case const& c, registry const& operators, instances::backend executor);

/// The operator merge_states of heads.json: parts of the keys, alone and merged.
outcome run_merge_states(golden_case const& c, registry const& operators, instances::backend executor);

/// Whether a case belongs to diagnostics.json.
bool is_diagnostic(golden_case const& c);

// These need no operator of the registry: they compute in the scalar of each executor.

/// The operator ema of affine.json: the running average of alpha.
outcome run_moving_average(golden_case const& c, registry const& operators, instances::backend executor);

/// The operators of diagnostics.json, by attune/analysis.
outcome run_diagnostics(golden_case const& c, registry const& operators, instances::backend executor);

/// The operator rotary of rotary.json, with its gradients.
outcome run_rotary(golden_case const& c, registry const& operators, instances::backend executor);

/// The operator cope of cope.json, with its gradients.
outcome run_cope(golden_case const& c, registry const& operators, instances::backend executor);

/// The operators l_align, l_spread and l_tau of regularizers.json.
outcome run_regularizer(golden_case const& c, registry const& operators, instances::backend executor);

/// The operators evict_geometric, density_compression and sliced_relu of sorted.json.
outcome run_eviction(golden_case const& c, registry const& operators, instances::backend executor);

/// The operators sorted_window and topk_captured_mass of sorted.json. The CPU executors run the cache, the reference
/// executors the rules as cases/README.md states them.
outcome run_cache_rule(golden_case const& c, registry const& operators, instances::backend executor);

/// The operators of fold.json.
outcome run_fold_case(golden_case const& c, registry const& operators, instances::backend executor);

outcome skip(std::string const& why);

}  // namespace attune::golden
