// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "affine.hpp"

namespace attune::instances {

void add_gated(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_output);
  add_affine_variants<affine_count::visible>(to, dot, "visible", sigmoid_output);
  add(to, dot, no_length_scale, no_gate, softmax, sigmoid_value);
  add(to, dot, no_length_scale, two_sided_gate, softmax);
  add(to, given, no_length_scale, given_two_sided_gate, softmax);
  add(to, dot, yarn, no_gate, softmax);
}

}  // namespace attune::instances
