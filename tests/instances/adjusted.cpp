// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_adjusted(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, adjusted_product);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero);
  add(to, dot, no_length_scale, no_gate, adjusted_with_zero_detached);
  add(to, dot, no_length_scale, no_gate, adjusted_full_range);
}

}  // namespace attune::instances
