// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_sparse(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, sparsemax);
  add(to, dot, no_length_scale, no_gate, entmax15);
  add(to, dot, no_length_scale, no_gate, entmax);
  add(to, given, no_length_scale, no_gate, sparsemax);
  add(to, given, no_length_scale, no_gate, entmax15);
  add(to, given, no_length_scale, no_gate, entmax);
}

}  // namespace attune::instances
