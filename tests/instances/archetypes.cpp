// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator for each kind of row state and each kind of input: what second compilers and sanitizers run in the quick tier
// instead of the whole registry. Two files, for two cores.
#include "instance.hpp"

namespace attune::instances {

void add_archetypes(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, softmax);
  add(to, given, no_length_scale, no_gate, softmax);
  add(to, dot, margin, softplus_gate, grounded);
  add(to, dot, no_length_scale, no_gate, sink_value);
  add(to, dot, no_length_scale, no_gate, affine_visible);
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value);
}

}  // namespace attune::instances
