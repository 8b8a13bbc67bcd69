// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Writes the file that it is given: what the Python package knows of every preset, built or not, as JSON.
//   presets   name, call in C++, policies, note, and the description of the C interface
//   policies  formula, parameters and source, by name
#include <cstdio>
#include <span>
#include <sstream>
#include <string>

#include <attune/interop/c_operator.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../tools/attune/catalogue.hpp"
#include "../../tools/catalogue/presets.hpp"
#include "extra.hpp"

#define PRESET(name, call, policies, names, note, op, ...) ATTUNE_C_MAKE(name, op)
ATTUNE_PRESETS(PRESET)
ATTUNE_EXTRA(PRESET)
#undef PRESET

namespace {

std::string quoted(std::string const& text) {
  std::string to = "\"";
  for (char x : text)
    if (x == '"' || x == '\\')
      (to += '\\') += x;
    else if (x != '`')  // Markdown's
      to += x;
  return to + "\"";
}

std::string list(std::string const& words) {
  std::istringstream from(words);
  std::string to, word;
  while (from >> word) to += (to.empty() ? "" : ", ") + quoted(word);
  return "[" + to + "]";
}

void write_preset(char const* comma, char const* name, char const* call, char const* policies, char const* note,
                  std::string const& description) {
  std::printf("%s\n{\"name\": %s, \"call\": %s, \"policies\": %s, \"note\": %s, \"description\": %s}", comma,
              quoted(name).c_str(), quoted(call).c_str(), list(policies).c_str(), quoted(note).c_str(),
              description.c_str());
}

}  // namespace

int main(int count, char** words) {
  if (count != 2 || !std::freopen(words[1], "w", stdout)) return 1;
  char const* comma = "";
  std::printf("{\"presets\": [");
#define PRESET(name, call, policies, names, note, op, ...)                                           \
  write_preset(comma, #name, call, policies, note,                                                   \
               attune::interop::operator_functions<attune::interop::make_##name>::description(#op)); \
  comma = ",";
  ATTUNE_PRESETS(PRESET)
  ATTUNE_EXTRA(PRESET)
#undef PRESET
  std::printf("],\n\"policies\": {");
  comma = "";
  for (attune::tool::policy_text const& x : attune::tool::policy_texts()) {
    std::string const name = x.name;  // "top_k{k}"
    std::printf("%s\n%s: [%s, %s, %s]", comma,
                quoted(x.role + ("::" + name.substr(0, name.find_first_of("({< ")))).c_str(), quoted(x.formula).c_str(),
                quoted(x.parameters).c_str(), quoted(x.source).c_str());
    comma = ",";
  }
  std::printf("}}\n");
  return std::fclose(stdout) == 0 ? 0 : 1;
}
