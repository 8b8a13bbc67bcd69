// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "gpu_main.hpp"

namespace attune::cuda_check {

struct every_third {
  ATTUNE_HD bool operator()(mask_row const& r, index_t j) const { return (r.query + j) % 3 != 0; }
};

void run() {
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
  // Wide rows, and masks that are no intervals.
  on_device<256>("softmax causal", {.queries = 130, .keys = 200, .width = 256, .value_width = 200}, causal);
  on_device<256, float>("softmax causal", {.queries = 130, .keys = 200, .width = 200, .value_width = 256}, causal);
  on_device<128>("sinks and window", {.queries = 257, .keys = 257, .width = 128, .value_width = 128},
                 [](auto&) { return softmax_attention(mask::sink_window{4, 40}); });
  on_device<128>("predicate", {.queries = 200, .keys = 257, .width = 128, .value_width = 128},
                 [](auto&) { return softmax_attention(mask::predicate{every_third{}}); });
}

}  // namespace attune::cuda_check
