// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "instance.hpp"

namespace attune::tool {

void instantiate_sliced_relu(std::map<std::string, runner>& to) {
  instantiate<recipes::sliced_relu_sum, recipes::sliced_relu_mean, recipes::sliced_relu_centered,
              recipes::sliced_relu_normalized>(to);
}

}  // namespace attune::tool
