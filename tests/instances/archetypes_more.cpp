// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The other half of archetypes.cpp.
#include "instance.hpp"

namespace attune::instances {

void add_more_archetypes(std::map<std::string, entry>& to) {
  add(to, given, no_length_scale, no_gate, sparsemax);
  add(to, hybrid, no_length_scale, no_gate, entmax);
  add(to, dot, no_length_scale, no_gate, top_3);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
  add(to, transformer_xl, no_length_scale, no_gate, sigmoid);
  add(to, dot_relative_bias, no_length_scale, no_gate, softmax, sigmoid_output);
}

}  // namespace attune::instances
