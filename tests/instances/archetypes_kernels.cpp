// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every contraction that no other archetype has: what the sanitizers of the full tier add.
#include "instance.hpp"

namespace attune::instances {

void add_archetype_kernels(std::map<std::string, entry>& to) {
  add(to, dot_bias, no_length_scale, no_gate, softmax);
  add(to, dot_spatial_prior, no_length_scale, no_gate, softmax);
  add(to, dot_fourier_key_bias, no_length_scale, no_gate, softmax);
  add(to, tupe, no_length_scale, no_gate, softmax);
  add(to, elementwise, no_length_scale, no_gate, softmax);
  add(to, bilinear, no_length_scale, no_gate, softmax);
  add(to, elliptical, no_length_scale, no_gate, softmax);
}

}  // namespace attune::instances
