// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_scalar(std::map<std::string, entry>& to) {
  add(to, scalar_sort, no_length_scale, no_gate, softmax);
  add(to, scalar_laplacian, no_length_scale, no_gate, softmax);
  add(to, scalar_difference, no_length_scale, no_gate, relu);
  add(to, scalar_difference, no_length_scale, no_gate, mean_relu);
  add(to, scalar_difference, no_length_scale, no_gate, normalized_relu);
  add(to, scalar_difference, no_length_scale, no_gate, centered_relu);
}

}  // namespace attune::instances
