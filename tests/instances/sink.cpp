// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_sink(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, sink);
  add(to, given, no_length_scale, no_gate, sink);
  add(to, dot_alibi, no_length_scale, no_gate, sink);
  add(to, dot, no_length_scale, no_gate, sink_value);
}

}  // namespace attune::instances
