// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Presets that are compiled into the program.
#include "runners.hpp"

#include "files.hpp"

namespace attune::tool {

/// Generated: the presets of the build.
void instantiate_all(std::map<std::string, runner>& to);

std::map<std::string, runner> const& runners() {
  static std::map<std::string, runner> const all = [] {
    std::map<std::string, runner> to;
    instantiate_all(to);
    return to;
  }();
  return all;
}

runner const& runner_of(std::string const& preset, entry) {
  auto const found = runners().find(preset);
  if (found != runners().end()) return found->second;
  std::string known;
  for (auto const& [name, unused] : runners()) known += (known.empty() ? "" : ", ") + name;
  throw usage_error("PRESET", preset, known + ": this program has no other; scripts/attune of the sources has all");
}

}  // namespace attune::tool
