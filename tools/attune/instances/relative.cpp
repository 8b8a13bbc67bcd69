// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_relative(std::map<std::string, runner>& to) {
  instantiate<recipes::relative_bias, recipes::t5, recipes::smca>(to);
}

}  // namespace attune::tool
