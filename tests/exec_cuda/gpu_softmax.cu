// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "device.hpp"

namespace attune::cuda_check {

void softmax_cases() {
  auto const full = [](auto&) { return softmax_attention(); };
  auto const causal = [](auto&) { return softmax_attention(mask::causal{}); };
  on_device<64>("softmax", {}, full);
  on_device<64>("softmax",
                {.batch = 2, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 333, .keys = 517, .unseen = 0},
                full);
  on_device<64>("softmax causal, NaN in unseen keys", {.queries = 257, .keys = 257, .unseen = 3}, causal, 1, -1, -3);
  on_device<64>("softmax causal, a NaN value", {.queries = 257, .keys = 257}, causal, 1, 50);
  on_device<64>("softmax causal, GQA 4:1, tails",
                {.batch = 2,
                 .heads = 8,
                 .key_heads = 2,
                 .value_heads = 2,
                 .queries = 129,
                 .keys = 130,
                 .width = 40,
                 .value_width = 56},
                causal);
  on_device<64>("softmax, rows apart", {.queries = 70, .keys = 65, .width = 16, .value_width = 64, .padded = true},
                full);
  on_device<64>("softmax, D 20 copied", {.queries = 70, .keys = 65, .width = 20, .value_width = 12}, full);
  on_device<64>("softmax, one row", {.queries = 1, .keys = 1}, full);
  on_device<64>("softmax causal, long",
                {.batch = 1, .heads = 2, .key_heads = 1, .value_heads = 1, .queries = 4096, .keys = 4096}, causal);
  on_device<128>("softmax", {.queries = 200, .keys = 300, .width = 128, .value_width = 128}, full);
  on_device<128>("softmax causal",
                 {.heads = 4, .queries = 257, .keys = 300, .width = 128, .value_width = 72, .unseen = 3}, causal, 1, -1,
                 40);
  on_device<128>("softmax causal, a NaN value", {.queries = 257, .keys = 257, .width = 128, .value_width = 128}, causal,
                 1, 50);
  on_device<64>("softmax, negative scale", {},
                [](auto&) { return attention(kernel::dot_product{.scale = -0.2}, mask::causal{}); });
  on_device<64, float16>("softmax causal", {.queries = 257, .keys = 257}, causal);
  on_device<64, float>("softmax", {}, full);
  on_device<64, float>("softmax, a NaN value", {}, full, 1, 50);
  on_device<64, float>("softmax causal, long",
                       {.batch = 1, .heads = 2, .key_heads = 1, .value_heads = 1, .queries = 4096, .keys = 4096},
                       causal);
  on_device<128, float>("softmax causal, GQA 2:1, tails, NaN in unseen keys",
                        {.heads = 4,
                         .key_heads = 2,
                         .value_heads = 2,
                         .queries = 257,
                         .keys = 300,
                         .width = 100,
                         .value_width = 71,
                         .unseen = 3},
                        causal, 1, -1, 40);
}
void softmax_times() {
  time<64>("softmax", softmax_attention(), 4, 16, 4096, 64, 1);
  time<64>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 64, 0.5);
  time<128>("softmax", softmax_attention(), 4, 16, 4096, 128, 1);
  time<128>("softmax causal", softmax_attention(mask::causal{}), 4, 16, 4096, 128, 0.5);
}

}  // namespace attune::cuda_check

namespace attune::cuda_check {
int failed() { return failures; }
}  // namespace attune::cuda_check
