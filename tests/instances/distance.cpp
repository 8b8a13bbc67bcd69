// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_distance(std::map<std::string, entry>& to) {
  add(to, rbf, no_length_scale, no_gate, softmax);
  add(to, l2, no_length_scale, no_gate, softmax);
  add(to, scaled_rbf, no_length_scale, no_gate, softmax);
  add(to, inverse_distance, no_length_scale, no_gate, softmax);
  add(to, bilinear, no_length_scale, no_gate, softmax);
  add(to, elliptical, no_length_scale, no_gate, softmax);
}

}  // namespace attune::instances
