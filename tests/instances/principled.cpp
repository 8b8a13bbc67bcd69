// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_principled(std::map<std::string, entry>& to) {
  add(to, dot, margin, softplus_gate, grounded);
  add(to, dot, margin, no_gate, grounded);
  add(to, dot_alibi, margin, no_gate, grounded);
}

}  // namespace attune::instances
