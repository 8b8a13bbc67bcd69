// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_unnormalised(std::map<std::string, runner>& to) { instantiate<recipes::gaussian, recipes::sigmoid>(to); }

}  // namespace attune::tool
