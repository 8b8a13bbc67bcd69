// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_sigmoid(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, sigmoid);
  add(to, dot, no_length_scale, no_gate, sigmoid_negk);
  add(to, dot, no_length_scale, no_gate, exponential);
  add(to, given, no_length_scale, no_gate, sigmoid);
  add(to, given, no_length_scale, no_gate, sigmoid_negk);
  add(to, given, no_length_scale, no_gate, exponential);
  add(to, rbf, no_length_scale, no_gate, exponential);
}

}  // namespace attune::instances
