// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_distances(std::map<std::string, runner>& to) {
  instantiate<recipes::rbf, recipes::l2, recipes::scaled_rbf, recipes::inverse_distance>(to);
}

}  // namespace attune::tool
