// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "affine.hpp"

namespace attune::instances {

void add_affine(std::map<std::string, entry>& to) {
  add_affine_variants<affine_count::visible>(to, dot, "visible");
  add_affine_variants<affine_count::total>(to, dot, "total");
  add_affine_variants<affine_count::visible>(to, given, "visible");
  add_affine_variants<affine_count::total>(to, given, "total");
  add(to, dot, no_length_scale, no_gate, affine_visible);
  add(to, given, no_length_scale, no_gate, affine_visible);
}

}  // namespace attune::instances
