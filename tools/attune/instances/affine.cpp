// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_affine(std::map<std::string, runner>& to) {
  instantiate<recipes::affine_scaled, recipes::affine_scaled_total>(to);
}

}  // namespace attune::tool
