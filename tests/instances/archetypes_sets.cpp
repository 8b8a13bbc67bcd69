// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The archetypes whose weights depend on a row's whole set of scores (see archetypes.cpp).
#include "instance.hpp"

namespace attune::instances {

void add_archetype_sets(std::map<std::string, entry>& to) {
  add(to, hybrid, no_length_scale, no_gate, entmax);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
}

}  // namespace attune::instances
