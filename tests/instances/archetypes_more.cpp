// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What archetypes.cpp leaves out, for second compilers and the full tier's sanitizers.
#include "instance.hpp"

namespace attune::instances {

void add_more_archetypes(std::map<std::string, entry>& to) {
  add(to, given, no_length_scale, no_gate, softmax);
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value);
  add(to, dot, no_length_scale, no_gate, sink_value);
  add(to, dot, no_length_scale, no_gate, affine_visible);
  add(to, given, no_length_scale, no_gate, sparsemax);
  add(to, dot, no_length_scale, no_gate, top_3);
  add(to, transformer_xl, no_length_scale, no_gate, sigmoid);
  add(to, dot_relative_bias, no_length_scale, no_gate, softmax, sigmoid_output);
}

}  // namespace attune::instances
