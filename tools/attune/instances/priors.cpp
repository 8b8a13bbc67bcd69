// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_priors(std::map<std::string, runner>& to) { instantiate<recipes::goat, recipes::goat_fourier>(to); }

}  // namespace attune::tool
