// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator for each kind of row state and each kind of input: what second compilers and sanitizers run in the quick tier
// instead of the whole registry. The sanitizers of the quick tier, which take a minute for an operator, run this file alone.
#include "instance.hpp"

namespace attune::instances {

void add_archetypes(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, softmax);
  add(to, given, no_length_scale, no_gate, softmax);
  add(to, dot, margin, softplus_gate, grounded);
  add(to, hybrid, no_length_scale, no_gate, entmax);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value);
}

}  // namespace attune::instances
