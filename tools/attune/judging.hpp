// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What a kernel handed back, read from files and judged: shared by `verdict` and `probes judge`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "call_arguments.hpp"
#include "commands.hpp"
#include "problem.hpp"

namespace attune::tool {

/// How strictly, as it is said on the command line.
struct strictness_words {
  std::string weights, arithmetic;
  std::vector<std::string> must_detect;

  void add_to(CLI::App& command);
};

/// The files of a kernel's results, and of the cotangents of its gradients; empty: not given.
struct result_words {
  std::string out, lse, lse_base, ground_weight, dout, dlse;
  std::string reference_out = {};                ///< what another implementation computed
  std::map<std::string, std::string> gradients;  ///< by the names of the inputs
  std::vector<std::string> more;                 ///< NAME=FILE, of inputs, parameters and tables

  void add_to(CLI::App& command);
};

/// Everything that is known of one judgement.
struct judged_call {
  call_arguments::call call;
  certify::storage stored;
  std::vector<std::pair<std::string, testing::verdict_report>> reports;  ///< of "outputs", of "gradients"
  std::optional<testing::verdict_report> reference;                      ///< of --reference-out
  std::vector<std::string> hints;                                        ///< what the caller may have meant

  /// The worst of them: FAIL, else UNDECIDABLE.
  testing::judgement decision() const;
};

/// Reads the call and the results, and judges them. Throws usage_error.
judged_call judge(call_arguments const& call, result_words const& files, strictness_words const& how);

/// What --reference-out tells: whether the kernel is wrong or the call is described wrongly. alike: out and reference.
std::string words_of_reference(testing::verdict_report const& out, testing::verdict_report const& reference,
                               bool alike);

/// The text of a report, with the hints below its first line.
std::string with_hints(testing::verdict_report const& r, std::vector<std::string> const& hints);

/// NAME or NAME=SIZE of --must-detect.
testing::demanded demanded_of(std::string const& word);

/// PASS 0, FAIL 1, UNDECIDABLE 3.
exit_status status_of(testing::judgement j);

/// A judgement in a report: decision, reasons, worst elements, findings, where the error sits.
nlohmann::ordered_json as_json(testing::verdict_report const& r);

}  // namespace attune::tool
