// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the registry calls once it is made: keeps the operators that run on Thrust and drops the others.
#include "system.hpp"

#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "../instances/registry.hpp"

namespace attune::thrust_tests {
namespace {

std::set<std::string>& names() {
  static std::set<std::string> all;
  return all;
}
char const* asked_for() { return std::getenv("ATTUNE_THRUST"); }

}  // namespace

host_system chosen_system() {
  static host_system const chosen = [] {
    std::string const name = asked_for() == nullptr ? "" : asked_for();
    if (name == "cpp") return host_system::cpp;
#if defined(_OPENMP)
    if (name == "omp") return host_system::omp;
#endif
#if defined(ATTUNE_TEST_TBB)
    if (name == "tbb") return host_system::tbb;
#endif
    throw std::invalid_argument("ATTUNE_THRUST is '" + name + "', a system that this program was not built for");
  }();
  return chosen;
}

void replaced(std::string const& name) { names().insert(name); }

}  // namespace attune::thrust_tests

namespace attune::instances {

/// Generated: registers what this library has.
void add_all_on_thrust(std::map<std::string, entry>&);

void replace_executors(std::map<std::string, entry>& all) {
  if (thrust_tests::asked_for() == nullptr) return;
  thrust_tests::chosen_system();
  add_all_on_thrust(all);
  std::erase_if(all, [](auto const& e) { return thrust_tests::names().count(e.first) == 0; });
}

}  // namespace attune::instances
