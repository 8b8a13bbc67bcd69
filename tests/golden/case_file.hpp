// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Golden case files: parsing and validation. The format is described in cases/README.md, section 1.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace attune::golden {

using index = std::ptrdiff_t;

/// A dense row-major array of doubles; shape {} never occurs, shape {1} is a scalar.
struct tensor {
  std::vector<index> shape;
  std::vector<double> data;
};

struct golden_case {
  std::string file;  ///< path it was read from
  std::string name;
  std::string operation;  ///< the field "operator": a family, see cases/README.md section 5
  nlohmann::json params;
  std::map<std::string, tensor> inputs;
  std::map<std::string, tensor> expected;  ///< including the gradients d_<input>
  std::vector<std::string> grads;
  std::map<std::string, double> grad_scale;
};

/// A file that cannot be read as golden cases. The message names file, case and field.
class bad_file : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads one file.
std::vector<golden_case> load_file(std::filesystem::path const& path);

/// Reads every *.json file of a directory in alphabetical order (or one file, if `path` is one). Case names must be
/// unique.
std::vector<golden_case> load(std::filesystem::path const& path);

/// True for the hand-written conventions of edge.json, which section 2 of the README treats differently.
bool is_convention(golden_case const& c);

/// True for the rules of sorted key caches: sorted.json shares the name of an operator with kernels.json.
bool is_cache_rule(golden_case const& c);

/// An expectation that is a gradient: one that `grads` lists (d_tilde of the diagnostics is none).
bool is_gradient(golden_case const& c, std::string_view tensor_name);

/// A number, also in the spellings "inf", "-inf", "nan"; nothing for any other JSON value.
std::optional<double> number(nlohmann::json const& value);

/// A numeric or textual parameter, absent if the case does not have it. Throws bad_file if it is of another kind.
std::optional<double> numeric_param(golden_case const& c, std::string const& key);
std::optional<std::string> text_param(golden_case const& c, std::string const& key);

}  // namespace attune::golden
