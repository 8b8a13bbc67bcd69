// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Presets from libraries in the folder `operators` beside the program. ATTUNE_BUILD_OPERATOR is the command that builds
// one: scripts/attune sets it.
#include <cstdlib>
#include <map>

#include "operator_libraries.hpp"

namespace attune::tool {

runner const& runner_of(std::string const& preset, entry wanted) {
  static std::map<std::string, runner> all;
  std::string const name = library_name(preset, wanted);
  auto found = all.find(name);
  if (found == all.end()) {
    auto const folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "operators";
    found = all.emplace(name, loaded(folder, name, std::getenv("ATTUNE_BUILD_OPERATOR"))).first;
  }
  return found->second;
}

}  // namespace attune::tool
