// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_off_by_one(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, off_by_one);
  add(to, given, no_length_scale, no_gate, off_by_one);
  add(to, dot_alibi, no_length_scale, no_gate, off_by_one);
  add(to, given, no_length_scale, no_gate, off_by_one_value);
}

}  // namespace attune::instances
