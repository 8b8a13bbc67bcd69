// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::instances {

void add_relative(std::map<std::string, entry>& to) {
  add(to, transformer_xl, no_length_scale, no_gate, softmax);
  add(to, dot_relative_bias, no_length_scale, no_gate, softmax);
  add(to, dot_t5_bias, no_length_scale, no_gate, softmax);
  add(to, dot_fourier_key_bias, no_length_scale, no_gate, softmax);
}

}  // namespace attune::instances
