// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "registry.hpp"

namespace attune::instances {

/// Generated (tests/CMakeLists.txt): registers the operators of the test scope.
void add_all(std::map<std::string, entry>& to);

/// Programs that test another executor with the tests of the registry put it in the place of the CPU (tests/thrust/).
[[gnu::weak]] void replace_executors(std::map<std::string, entry>& all);
/// Programs that know exact results hold every executor to its error bounds, the replaced ones too (tests/enclosure/).
[[gnu::weak]] void hold_to_enclosures(std::map<std::string, entry>& all);
/// Programs that repeat each run by products of bf16 (tests/bf16_products/).
[[gnu::weak]] void hold_products_of_bf16(std::map<std::string, entry>& all);

std::map<std::string, entry> const& registry() {
  static std::map<std::string, entry> const all = [] {
    std::map<std::string, entry> to;
    add_all(to);
    if (replace_executors != nullptr) replace_executors(to);
    if (hold_to_enclosures != nullptr) hold_to_enclosures(to);
    if (hold_products_of_bf16 != nullptr) hold_products_of_bf16(to);
    return to;
  }();
  return all;
}

entry const* find(std::string const& name) {
  auto const found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

char const* name(backend b) noexcept {
  switch (b) {
    case backend::reference_double:
      return "reference<double>";
    case backend::reference_50:
      return "reference<50 digits>";
    case backend::cpu_float:
      return "cpu<float>";
    case backend::cpu_double:
      return "cpu<double>";
  }
  return "?";
}

}  // namespace attune::instances
