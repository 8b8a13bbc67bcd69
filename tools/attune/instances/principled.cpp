// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_principled(std::map<std::string, runner>& to) {
  instantiate<recipes::principled, recipes::two_sided, recipes::value_gated>(to);
}

}  // namespace attune::tool
