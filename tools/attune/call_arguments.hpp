// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The arguments that say what is computed: operator, tensors, parameters, masks, executor. Shared by the commands that
// compute.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <attune/io/array.hpp>

#include "catalogue.hpp"
#include "layouts.hpp"
#include "problem.hpp"

namespace attune::tool {

/// The arguments as they were given.
struct call_words {
  std::string preset, from, executor = "cpu", dtype;
  std::map<std::string, std::string> tensors;  ///< by the names of the inputs
  std::vector<std::string> parameters, masks;
  std::optional<long> offset;
  layout_words layout;
  int threads = 0;
};

/// How many axes a file may have: (batch, head, position, feature), or (batch, head, position) of one
/// number per row. as_stored: the shape that is expected, with any axes of extent 1 left out.
enum class file_axes { tensor, rows, as_stored };

class call_arguments {
 public:
  call_arguments() = default;
  explicit call_arguments(call_words words) : words_(std::move(words)) {}

  /// Adds PRESET, --parameter, --mask and --offset.
  void add_operator_to(CLI::App& command);
  /// Adds the inputs and --from.
  void add_inputs_to(CLI::App& command);
  /// Adds --layout and what else says how files are laid out.
  void add_layout_to(CLI::App& command) { words_.layout.add_to(command); }
  /// Adds --dtype, with what it means to the command.
  void add_dtype_to(CLI::App& command, std::string const& meaning);
  /// Adds all of these, --executor and --threads.
  void add_to(CLI::App& command);

  /// Reads and checks everything. Throws usage_error; shapes are left to the operator, which names them as well.
  struct call {
    preset const* of;
    problem what;
    io::element_type stored;                        ///< of the outputs
    std::map<std::string, io::element_type> types;  ///< of the inputs in their files
    shape out{0, 0, 0, 0};                          ///< extents of the output
    file_layout layout;                             ///< of the files
    index_t page = 0;                               ///< keys of a page of the cache; 0: no pages
    query_places places;                            ///< of the queries among the keys
  };
  call read() const;
  /// The operator alone, without inputs and masks.
  call read_operator() const;
  /// The mask in words for a problem of these extents.
  mask_memory mask(mask_shape const& of, index_t offset) const;
  /// Adds the masks of kernels that align them wrongly: top-left, one key late, one key early.
  void add_misaligned(call& c) const;

  /// An array of the command's own that goes with the call, a cotangent, say, in the problem's precision.
  struct extra {
    numbers values;
    io::element_type type;
  };
  extra read_extra(std::string const& argument, std::string const& value, std::string const& own_name, call const& with,
                   shape const& expected, file_axes axes = file_axes::tensor) const;
  /// The call in a report.
  nlohmann::ordered_json report(call const& c) const;

  call_words const& words() const { return words_; }
  /// What --dtype says, if it says anything.
  std::optional<io::element_type> dtype() const;

 private:
  call_words words_;
  std::optional<io::element_type> narrow() const;
};

/// "f64", "f32", "f16" or "bf16"; throws usage_error for other words.
io::element_type element_type_named(std::string const& argument, std::string const& value);
/// (B, H, Lq, 1) of numbers per row.
shape rows_of(shape const& out);

/// Numbers as an array of this type, with the axes (B, H, L, D) or, of one number per row, (B, H, L).
io::array stored_as(numbers const& x, io::element_type type, bool per_position);
/// "out.npy: float32 (1, 2, 3, 4)" for the eye, and the same with its range for reports.
std::string describe(std::string const& file, io::array const& x);
nlohmann::ordered_json report_of(std::string const& file, io::array const& x);
/// Writes a report: a file, or standard output for "-".
void write_report(std::string const& to, nlohmann::ordered_json const& report);
/// Writes a text; errors name the argument.
void write_text(std::string const& argument, std::string const& to, std::string const& text);

}  // namespace attune::tool
