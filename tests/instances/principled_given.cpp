// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_principled_given(std::map<std::string, entry>& to) {
  add(to, given, margin, no_gate, grounded);
  add(to, given, margin, given_softplus_gate, grounded);
  add(to, dot, margin, given_softplus_gate, grounded);
  add(to, given, margin, softplus_gate, grounded);
}

}  // namespace attune::instances
