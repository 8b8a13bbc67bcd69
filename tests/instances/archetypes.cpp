// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One operator for each kind of row state and each kind of input: what second compilers and sanitizers run in the quick tier
// instead of the whole registry. Sanitized, an operator takes a minute to compile: hence archetypes_sets.cpp beside this file,
// for a second core, and archetypes_more.cpp, which the sanitizers of the quick tier leave out.
#include "instance.hpp"

namespace attune::instances {

void add_archetypes(std::map<std::string, entry>& to) {
  add(to, dot, no_length_scale, no_gate, softmax);
  add(to, dot, margin, softplus_gate, grounded);
}

}  // namespace attune::instances
