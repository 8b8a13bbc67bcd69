// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "thrust_runners.hpp"

#include "runners.hpp"

namespace attune::tool {

/// Generated: every preset on Thrust.
void instantiate_all_on_thrust(std::map<std::string, runner>& to);

std::map<std::string, runner> const& thrust_runners() {
  static std::map<std::string, runner> const all = [] {
    std::map<std::string, runner> to = runners();
    instantiate_all_on_thrust(to);
    return to;
  }();
  return all;
}

}  // namespace attune::tool
