// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the command line knows of each preset of tools/catalogue: the one list behind `presets`, `explain`, and the
// checks of `run` and `gradient`. Inputs, parameters, domains and outputs are asked of the operator's type.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <attune/core/table.hpp>
#include <attune/policies/contraction.hpp>

namespace attune::tool {

/// A row of docs/reference/operators.md; words may have Markdown's backticks.
struct policy_text {
  char const* role;     ///< "kernel"
  char const* name;     ///< "dot_product", as the page writes it: "top_k{k}"
  char const* formula;  ///< of the score, the logit or the weight
  char const* parameters;
  char const* inputs;  ///< beside .v
  char const* becomes;
  char const* state;
  char const* source;
};
std::span<policy_text const> policy_texts();
/// Of "kernel::dot_product"; throws std::logic_error.
policy_text const& find_policy(std::string const& name);
/// A text without backticks.
std::string plain(char const* text);

struct parameter_entry {
  std::string name;                ///< what the command line calls it
  std::vector<std::string> paths;  ///< what the operator calls it: one parameter that several policies read has several
  std::string expected;            ///< its domain in words
  std::string fallback;            ///< what it is when it is not given; empty: it must be given
};
struct table_entry {
  std::string name, path;
  table_width width;
};
struct constant_entry {
  std::string name;
  long fallback;
};

struct preset {
  std::string name;                   ///< "principled"
  std::string call;                   ///< "principled_attention", the function in C++
  std::vector<std::string> policies;  ///< "kernel::dot_product"
  std::vector<field> inputs;
  std::vector<parameter_entry> parameters;
  std::vector<table_entry> tables;
  std::vector<constant_entry> constants;
  std::vector<std::string> arrays = {};  ///< each must be given, and has no gradient
  bool has_lse = false, has_ground_weight = false, has_threshold = false;
};

/// All presets, in the order of docs/reference/operators.md; then the operators of tools/catalogue/more.hpp.
std::vector<preset> const& catalogue();
/// By name, with or without "_attention"; throws attune::error that lists the nearest names.
preset const& find_preset(std::string const& name);
/// "(B, H, Lq, D)"
std::string shape_of(field f);
/// Whether an input is one number per position: its file has the axes (batch, head, position).
bool is_per_position(field f);
/// One line for the list: the formulas of what the preset is made of, and which form of them it is.
std::string summary(preset const& p);

}  // namespace attune::tool
