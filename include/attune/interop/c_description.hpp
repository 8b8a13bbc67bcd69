// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   std::string const text = description_of(facts);
//
// The text of attune_operator.description (c_abi.h): JSON. It is written from facts that do not depend on the
// operator's type, so this code is compiled once, not once per operator.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/number_text.hpp>
#include <attune/operators/listing.hpp>

namespace attune::interop {

/// The facts in attune_operator.description. The operator must live as long as they do.
struct operator_facts {
  int types = 0;                                               ///< ATTUNE_C_TYPES
  int heads_each = 1;                                          ///< heads of a tensor are multiples of this
  bool decodes = false;                                        ///< whether decode() takes it
  bool has_lse = false;                                        ///< whether lse is an output
  bool has_ground_weight = false;                              ///< whether ground_weight is an output
  bool has_threshold = false;                                  ///< whether threshold is an output
  char const* expression = "";                                 ///< its C++
  std::vector<field> fields = {};                              ///< the tensors that it reads
  std::vector<operator_parameter> parameters = {};             ///< as listed_parameters()
  std::vector<bool> required = {};                             ///< of each parameter: whether it has no default
  std::vector<operator_table> tables = {};                     ///< as listed_tables()
  std::vector<std::string> arrays = {};                        ///< names of arrays that the expression takes
  std::vector<std::pair<std::string, double>> constants = {};  ///< names and defaults
};

/// The description as JSON. Complexity: linear in its length.
inline std::string description_of(operator_facts const& facts) {
  std::string all = "{\"fields\": [", comma;
  auto const next = [&](std::string const& x) { all += comma + x, comma = ", "; };
  auto const list = [&](char const* name) { all += std::string("], \"") + name + "\": [", comma = ""; };
  auto const quoted = [](std::string const& x) { return "\"" + x + "\""; };
  auto const number = [](double x) {
    std::string const text = attune::detail::number_text(x, 17);
    return text == "inf" ? "Infinity" : text == "-inf" ? "-Infinity" : text;
  };
  constexpr char const* sides[] = {"query", "key", "pair", "ground"};
  for (field const f : facts.fields)
    next("{\"name\": " + quoted(name_of(f)) + ", \"side\": " + quoted(sides[int(side_of(f))]) +
         ", \"features\": " + quoted(fields[std::size_t(f)].features) + "}");
  list("parameters");
  for (std::size_t n = 0; n < facts.parameters.size(); ++n) {
    constexpr char const* domains[] = {"real", "extended", "real_or_minus_inf", "positive", "above_one", "one_to_four"};
    operator_parameter const& p = facts.parameters[n];
    next("{\"path\": " + quoted(p.path()) + ", \"domain\": " + quoted(domains[int(p.values)]) +
         ", \"value\": " + (p.at->is_number() ? number(p.at->at(0, 0, 0)) : std::string("null")) +
         ", \"required\": " + (facts.required[n] ? "true}" : "false}"));
  }
  list("tables");
  for (operator_table const& t : facts.tables) {
    constexpr char const* widths[] = {"any", "one", "query", "query_row"};
    next("{\"path\": " + quoted(t.path()) + ", \"columns\": " + quoted(widths[int(t.width)]) + "}");
  }
  for (std::string const& name : facts.arrays)
    next("{\"path\": " + quoted(name) + ", \"columns\": \"any\", \"gradient\": false}");
  list("constants");
  for (auto const& [name, value] : facts.constants) next("[" + quoted(name) + ", " + number(value) + "]");
  list("outputs");
  next("\"out\"");
  if (facts.has_lse) next("\"lse\"");
  if (facts.has_ground_weight) next("\"ground_weight\"");
  if (facts.has_threshold) next("\"threshold\"");
  list("types");
  if ((facts.types & 1) != 0) next("\"float32\"");
  if ((facts.types & 2) != 0) next("\"float64\"");
  if ((facts.types & 4) != 0) next("\"bfloat16\""), next("\"float16\"");
  all += "], \"heads_each\": " + std::to_string(facts.heads_each) +
         ", \"decodes\": " + (facts.decodes ? "true" : "false") + ", \"expression\": \"";
  for (char const* x = facts.expression; *x; ++x) {
    if (*x == '"' || *x == '\\') all += '\\';
    all += *x;
  }
  return all + "\"}";
}

}  // namespace attune::interop
