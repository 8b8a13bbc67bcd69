// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_positions(std::map<std::string, runner>& to) { instantiate<recipes::tupe, recipes::transformer_xl>(to); }

}  // namespace attune::tool
