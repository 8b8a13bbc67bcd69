// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_length_scale(std::map<std::string, entry>& to) {
  add(to, dot, ssmax, no_gate, softmax);
  add(to, given, ssmax, no_gate, softmax);
  add(to, dot, logn, no_gate, softmax);
  add(to, dot, margin, no_gate, softmax);
}

}  // namespace attune::instances
