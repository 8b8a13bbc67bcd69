// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator for each kind of row state and each kind of input that the softmax, sink and principled groups do not have: what
// second compilers and sanitizers run in the quick tier instead of the whole registry.
#include "instance.hpp"

namespace attune::instances {

void add_archetypes(std::map<std::string, entry>& to) {
  add(to, given, no_length_scale, no_gate, sparsemax);
  add(to, hybrid, no_length_scale, no_gate, entmax);
  add(to, dot, no_length_scale, no_gate, top_3);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
  add(to, dot, no_length_scale, no_gate, affine_visible);
  add(to, transformer_xl, no_length_scale, no_gate, sigmoid);
  add(to, dot_relative_bias, no_length_scale, no_gate, softmax, sigmoid_output);
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value);
}

}  // namespace attune::instances
