// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "affine.hpp"

namespace attune::instances {

void add_hybrid(std::map<std::string, entry>& to) {
  add(to, hybrid, no_length_scale, no_gate, softmax);
  add(to, hybrid, no_length_scale, no_gate, off_by_one);
  add(to, hybrid, no_length_scale, no_gate, sink);
  add_affine_variants<affine_count::visible>(to, hybrid, "visible");
}

}  // namespace attune::instances
