// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune presets, attune explain PRESET
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include <attune/operators/inputs.hpp>

#include "call_arguments.hpp"
#include "catalogue.hpp"
#include "commands.hpp"
#include "files.hpp"

namespace attune::tool {
namespace {

/// The text and blanks up to this many characters: UTF-8's continuation bytes are none.
std::string padded(std::string s, std::size_t width) {
  std::size_t characters = 0;
  for (char const c : s) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  if (characters < width) s.append(width - characters, ' ');
  return s;
}

void explain(preset const& p) {
  std::cout << p.name << ": attune::" << p.call << "\n\nFormula\n";
  for (auto const& name : p.policies) {
    policy_text const& t = find_policy(name);
    std::cout << "  " << padded(name, 26) << plain(t.formula) << "\n";
    auto const line = [](char const* what, char const* text) {
      if (*text != 0) std::cout << padded("", 28) << what << ": " << plain(text) << "\n";
    };
    line("parameters", t.parameters);
    line("becomes", t.becomes);
    line("source", t.source);
  }
  std::cout << "\nInputs (leading axes of extent 1 may be missing in files)\n";
  for (field f : p.inputs)
    std::cout << "  " << padded(option_of(name_of(f)), 26) << shape_of(f)
              << (f == field::v0 ? ", zeros if it is not given" : "") << "\n";
  if (!p.parameters.empty() || !p.tables.empty() || !p.constants.empty() || !p.arrays.empty())
    std::cout << "\nParameters (--parameter NAME=VALUE)\n";
  for (auto const& e : p.parameters)
    std::cout << "  " << padded(e.name, 26) << e.expected
              << (e.fallback.empty() ? ", required" : ", default " + e.fallback) << "\n";
  for (auto const& t : p.tables)
    std::cout << "  " << padded(t.name, 26) << "a table, "
              << (t.width == table_width::query_row ? "(D)"
                  : t.width == table_width::query   ? "(rows, D)"
                                                    : "(rows)")
              << ", or with (batch, head) in front; required\n";
  for (auto const& name : p.arrays)
    std::cout << "  " << padded(name, 26) << "an array (rows, 2 R): R cosines, then R sines; required\n";
  for (auto const& c : p.constants)
    std::cout << "  " << padded(c.name, 26) << "a whole number, default " << c.fallback << "\n";
  std::cout << "\nOutputs\n  " << padded("--out", 26) << "(B, H, Lq, Dv)\n";
  if (p.has_lse) std::cout << "  " << padded("--lse", 26) << "(B, H, Lq), natural logarithm of all mass of a row\n";
  if (p.has_ground_weight)
    std::cout << "  " << padded("--ground-weight", 26) << "(B, H, Lq), the weight that no key has\n";
  if (p.has_threshold)
    std::cout << "  " << padded("--threshold", 26) << "(B, H, Lq), the level that logits must pass\n";
}

nlohmann::ordered_json listed(preset const& p) {
  nlohmann::ordered_json j{{"name", p.name}, {"call", p.call}};
  for (auto const& name : p.policies)
    j["policies"].push_back(
        {{"name", name}, {"formula", plain(find_policy(name).formula)}, {"source", find_policy(name).source}});
  for (field f : p.inputs) j["inputs"][name_of(f)] = shape_of(f);
  for (auto const& e : p.parameters) {
    j["parameters"][e.name]["domain"] = e.expected;
    if (!e.fallback.empty()) j["parameters"][e.name]["default"] = e.fallback;
  }
  for (auto const& t : p.tables) j["tables"].push_back(t.name);
  for (auto const& name : p.arrays) j["arrays"].push_back(name);
  for (auto const& c : p.constants) j["constants"][c.name] = c.fallback;
  j["outputs"].push_back("out");
  if (p.has_lse) j["outputs"].push_back("lse");
  if (p.has_ground_weight) j["outputs"].push_back("ground_weight");
  if (p.has_threshold) j["outputs"].push_back("threshold");
  return j;
}

}  // namespace

void add_presets(CLI::App& program, exit_status&) {
  auto* const command = program.add_subcommand("presets", "List the operators, with their formulas");
  auto const json = std::make_shared<std::string>();
  command->add_option("--json", *json, "Write the list as JSON to a file, or to standard output for -")
      ->type_name("FILE");
  command->callback([json] {
    if (!json->empty()) {
      auto all = nlohmann::ordered_json::array();
      for (preset const& p : catalogue()) all.push_back(listed(p));
      write_report(*json, all);
      return;
    }
    for (preset const& p : catalogue()) std::cout << padded(p.name, 26) << summary(p) << "\n";
  });
}

void add_explain(CLI::App& program, exit_status&) {
  auto* const command =
      program.add_subcommand("explain", "Say what an operator is: formula, inputs, parameters, outputs, source");
  auto const name = std::make_shared<std::string>(), json = std::make_shared<std::string>();
  command->add_option("PRESET", *name, "A name that 'attune presets' lists")->required();
  command->add_option("--json", *json, "Write it as JSON to a file, or to standard output for -")->type_name("FILE");
  command->callback([name, json] {
    preset const& p = find_preset(*name);
    if (json->empty())
      explain(p);
    else
      write_report(*json, listed(p));
  });
}

}  // namespace attune::tool
