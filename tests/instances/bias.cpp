// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_bias(std::map<std::string, entry>& to) {
  add(to, dot_bias, no_length_scale, no_gate, softmax);
  add(to, tempered_log_prior, no_length_scale, no_gate, softmax);
  add(to, dot_spatial_prior, no_length_scale, no_gate, softmax);
  add(to, tupe, no_length_scale, no_gate, softmax);
  add(to, elementwise, no_length_scale, no_gate, softmax);
}

}  // namespace attune::instances
