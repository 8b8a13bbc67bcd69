// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_grounded(std::map<std::string, entry>& to) {
  add(to, given, no_length_scale, no_gate, grounded);
  add(to, dot, no_length_scale, no_gate, grounded);
  add(to, dot_alibi, margin, softplus_gate, grounded);
}

}  // namespace attune::instances
