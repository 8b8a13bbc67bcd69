// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Times of forward calls, at the shapes of scripts/lib/torch_times.py.
#include "gpu_main.hpp"

namespace attune::cuda_check {

void run() {
  auto const principled = principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, mask::causal{});
  time<64>("softmax", softmax_attention(), 4, 16, 4096, 64, 1);
  time<64>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 64, 0.5);
  time<128>("softmax", softmax_attention(), 4, 16, 4096, 128, 1);
  time<128>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 128, 0.5);
  time<128>("sigmoid causal", sigmoid_attention({}, mask::causal{}), 4, 16, 4096, 128, 0.5);
  time<128>("principled causal", principled, 4, 16, 4096, 128, 0.5);
  time<64, float>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 64, 0.5);
  time<128, float>("softmax", softmax_attention(), 4, 16, 4096, 128, 1);
  time<128, float>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 128, 0.5);
  time<128, float>("principled causal", principled, 4, 16, 4096, 128, 0.5);
}

}  // namespace attune::cuda_check
