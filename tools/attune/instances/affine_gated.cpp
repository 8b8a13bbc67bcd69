// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_affine_gated(std::map<std::string, runner>& to) {
  instantiate<recipes::affine_gated, recipes::affine_gated_total, recipes::gated>(to);
}

}  // namespace attune::tool
