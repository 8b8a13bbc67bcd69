// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "experiment.hpp"

namespace gallery {

std::vector<experiment> all_experiments() {
  return {distances(), critical(), separability(), sensitivity(), weights(), principled_grid()};
}

}  // namespace gallery
