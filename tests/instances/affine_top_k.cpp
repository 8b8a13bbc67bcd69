// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_affine_top_k(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, free_affine);
  add(to, given, no_length_scale, no_gate, free_affine);
  add(to, dot, no_length_scale, no_gate, top_3);
  add(to, given, no_length_scale, no_gate, top_3);
}

}  // namespace attune::instances
