// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_biases(std::map<std::string, runner>& to) {
  instantiate<recipes::biased, recipes::alibi, recipes::softcap>(to);
}

}  // namespace attune::tool
