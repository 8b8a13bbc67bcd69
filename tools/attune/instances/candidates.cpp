// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_candidates(std::map<std::string, runner>& to) {
  instantiate<recipes::sparsemax, recipes::entmax, recipes::entmax15, recipes::top_k>(to);
}

}  // namespace attune::tool
