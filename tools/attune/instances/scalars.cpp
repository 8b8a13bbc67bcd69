// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_scalars(std::map<std::string, runner>& to) {
  instantiate<recipes::scalar_sort, recipes::scalar_laplacian, recipes::hybrid>(to);
}

}  // namespace attune::tool
