// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "operator_libraries.hpp"

#include <cstdlib>
#include <map>

#include <dlfcn.h>

#include "files.hpp"

namespace attune::tool {

std::string library_name(std::string const& preset, entry wanted) { return preset + "_" + entry_names[int(wanted)]; }

runner loaded(std::filesystem::path const& folder, std::string const& name, char const* build) {
  if (build != nullptr && *build != 0) {
    std::string const command = std::string(build) + " " + name;
    if (std::system(command.c_str()) != 0) throw usage_error("attune: " + name + " cannot be built: " + command);
  }
  std::string const file = (folder / (name + ".so")).string();
  if (!std::filesystem::exists(file))
    throw usage_error(file + " is missing: scripts/attune builds it, or cmake --build ... --target attune_operator_" +
                      name);
  // It stays loaded: its functions and the names of its types are used until the program ends.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw usage_error(std::string("attune: ") + dlerror());
  auto const fill = reinterpret_cast<void (*)(runner*)>(dlsym(library, "attune_fill_runner"));
  if (fill == nullptr) throw usage_error(file + " is no operator of attune");
  runner to;
  fill(&to);
  return to;
}

}  // namespace attune::tool
