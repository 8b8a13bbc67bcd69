// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the registry calls once its executors are in place: every operator on intervals.
#include "../instances/registry.hpp"

namespace attune::instances {

/// Generated: registers what this library has.
void add_all_enclosed(std::map<std::string, entry>&);

void hold_to_enclosures(std::map<std::string, entry>& all) { add_all_enclosed(all); }

}  // namespace attune::instances
