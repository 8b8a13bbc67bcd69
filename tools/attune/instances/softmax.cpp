// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_softmax(std::map<std::string, runner>& to) {
  instantiate<recipes::softmax, recipes::off_by_one, recipes::sink>(to);
}

}  // namespace attune::tool
