// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_self_adjusted(std::map<std::string, runner>& to) {
  instantiate<recipes::self_adjusted, recipes::self_adjusted_product, recipes::self_adjusted_full_range>(to);
}

}  // namespace attune::tool
