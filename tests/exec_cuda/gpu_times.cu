// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "device.hpp"

namespace attune::cuda_check {

void preset_times() {
  time<128>("principled causal", principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{}), 4,
            16, 4096, 128, 0.5);
  time<128>("sigmoid causal", sigmoid_attention({}, mask::causal{}), 4, 16, 4096, 128, 0.5);
}

}  // namespace attune::cuda_check
