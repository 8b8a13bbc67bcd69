// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_composed(std::map<std::string, entry>& to) {
  add(to, hybrid, no_length_scale, no_gate, sparsemax);
  add(to, hybrid, no_length_scale, no_gate, entmax);
  add(to, hybrid, margin, softplus_gate, grounded);
  add(to, dot_alibi, no_length_scale, no_gate, sparsemax);
}

}  // namespace attune::instances
