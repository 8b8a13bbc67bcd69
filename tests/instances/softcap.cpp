// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_softcap(std::map<std::string, entry>& to) {
  add(to, dot_softcap, no_length_scale, no_gate, softmax);
  add(to, given_softcap, no_length_scale, no_gate, softmax);
  add(to, dot_alibi_softcap, no_length_scale, no_gate, softmax);
}

}  // namespace attune::instances
