// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The arguments that say what is computed: operator, tensors, parameters, masks, executor. Shared by the commands that compute.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <attune/io/array.hpp>

#include "catalogue.hpp"
#include "problem.hpp"

namespace attune::tool {

class call_arguments {
 public:
  /// Adds PRESET, the inputs, --from, --parameter, --mask, --offset, --executor, --dtype and --threads.
  void add_to(CLI::App& command);

  /// Reads and checks everything. Throws usage_error; shapes are left to the operator, which names them as well.
  struct call {
    preset const* of;
    problem what;
    io::element_type stored;                        ///< of the outputs
    std::map<std::string, io::element_type> types;  ///< of the inputs in their files
  };
  call read() const;
  /// An array of the command's own that goes with the call, a cotangent, say, in the problem's precision.
  numbers read_extra(std::string const& argument, std::string const& value, std::string const& own_name, call const& with,
                     bool per_position) const;
  /// The call in a report.
  nlohmann::ordered_json report(call const& c) const;

 private:
  std::string preset_, from_, executor_ = "cpu", dtype_;
  std::map<std::string, std::string> tensors_;
  std::vector<std::string> parameters_, masks_;
  std::optional<long> offset_;
  int threads_ = 0;

  std::optional<io::element_type> words() const;
};

/// Numbers as an array of this type, with the axes (B, H, L, D) or, of one number per row, (B, H, L).
io::array stored_as(numbers const& x, io::element_type type, bool per_position);
/// "out.npy: float32 (1, 2, 3, 4)" for the eye, and the same with its range for reports.
std::string describe(std::string const& file, io::array const& x);
nlohmann::ordered_json report_of(std::string const& file, io::array const& x);
/// Writes a report: a file, or standard output for "-".
void write_report(std::string const& to, nlohmann::ordered_json const& report);

}  // namespace attune::tool
