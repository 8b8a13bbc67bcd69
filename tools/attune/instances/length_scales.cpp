// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_length_scales(std::map<std::string, runner>& to) {
  instantiate<recipes::ssmax, recipes::log_n, recipes::margin, recipes::yarn>(to);
}

}  // namespace attune::tool
