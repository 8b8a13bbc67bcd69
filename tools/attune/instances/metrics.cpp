// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_metrics(std::map<std::string, runner>& to) { instantiate<recipes::elliptical, recipes::bilinear>(to); }

}  // namespace attune::tool
