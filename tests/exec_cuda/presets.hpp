// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The operators of the executor `cuda`, in groups that compile in a similar time. `on(name, sizes, make, loose)` runs one.
// scripts/operator_tables reads the next line.
// Run on an NVIDIA H200, 2026-11-27, in bf16 and in fp32: groups 0 to 14.
#pragma once

#include "check.hpp"

namespace attune::cuda_check {

inline sizes const square{.batch = 1, .heads = 4, .key_heads = 2, .value_heads = 2, .queries = 150, .keys = 257};
inline mask::causal visible() { return {}; }

template <int Group, class On>
void presets(On const& on) {
  if constexpr (Group == 0) {
    on("principled", square,
       [](auto&) { return principled_attention({.alpha = -1.0, .beta = 0.2, .gamma = 0.3}, visible()); });
    on("off by one", square, [](auto&) { return off_by_one_attention(visible()); });
    on("sink", square, [](auto&) { return sink_attention(0.7, visible()); });
  } else if constexpr (Group == 1) {
    on("margin", square, [](auto&) { return margin_attention(-1.0, 0.3, visible()); });
    on("ssmax", square, [](auto&) { return ssmax_attention({}, visible()); });
    on("two-sided gate", square, [](auto&) { return two_sided_attention(0.3, visible()); });
  } else if constexpr (Group == 2) {
    on("sigmoid", square, [](auto&) { return sigmoid_attention({}, visible()); });
    on("softcap", square, [](auto&) { return softcap_attention(10, visible()); });
    on("ALiBi", square, [](auto&) { return alibi_attention(0.05, visible()); });
  } else if constexpr (Group == 3) {
    on("value gate", square, [](auto&) { return value_gated_attention(visible()); }, 2);
    on("output gate", square, [](auto&) { return gated_attention(visible()); });
    on("affine", square, [](auto&) { return affine_scaled_attention(0.8, 0.9, visible()); });
  } else if constexpr (Group == 4) {
    on("self-adjusted", square, [](auto&) { return self_adjusted_attention(visible()); });
    on("RBF", square, [](auto&) { return rbf_attention(20, visible()); });
    on("L2", square, [](auto&) { return l2_attention({}, visible()); });
  } else if constexpr (Group == 5) {
    on(
        "elliptical", square, [](auto& of) { return elliptical_attention(of.numbers(1, 1, of.width, 0), visible()); },
        4);
    on("bilinear", square, [](auto& of) { return bilinear_attention(of.numbers(4, 1, of.width), visible()); }, 4);
    on(
        "rotary", square,
        [](auto& of) { return attention(kernel::rotary{.angles = of.angles(257, of.width / 2)}, visible()); }, 4);
  } else if constexpr (Group == 6) {
    on("scalar sort", square, [](auto&) { return scalar_sort_attention(0.5, visible()); });
    on("hybrid", square, [](auto&) { return hybrid_attention(0.5, visible()); });
    on("given bias", square, [](auto&) { return biased_attention(visible()); });
  } else if constexpr (Group == 7) {
    on("relative bias", square, [](auto& of) { return relative_bias_attention(of.numbers(4, 33, 1), visible()); });
    on("T5 bias", square, [](auto& of) { return t5_attention({of.numbers(4, 32, 1)}, visible()); });
    on("TUPE", square, [](auto&) { return tupe_attention(visible()); });
  } else if constexpr (Group == 8) {
    on(
        "Transformer-XL", square,
        [](auto& of) {
          return transformer_xl_attention(of.numbers(4, 1, of.width), of.numbers(4, 1, of.width),
                                          of.numbers(4, 1025, of.width), visible());
        },
        4);
    on("SMCA", square, [](auto&) { return smca_attention(0.3, visible()); });
    on("dropout", square,
       [](auto&) { return attention(kernel::dot_product{}, visible(), gate::dropout{.rate = 0.2, .seed = 77}); });
  } else if constexpr (Group == 9) {
    on("sink and window", square, [](auto&) { return sink_attention(0.7, mask::causal_window{50}); });
    on("sinks and window", square, [](auto&) { return softmax_attention(mask::sink_window{4, 40}); });
    on("documents", square, [](auto& of) {
      std::vector<index_t> queries, keys;
      for (index_t i = 0; i < 150; ++i) queries.push_back((i + 107) / 60);
      for (index_t j = 0; j < 257; ++j) keys.push_back(j / 60);
      return softmax_attention(mask::documents(of.array(queries), 150, of.array(keys), 257) & mask::causal{});
    });
  } else if constexpr (Group == 10) {
    on("ReLU on a line", square,
       [](auto&) { return attention(kernel::scalar_difference{}, normalizer::normalized_relu{}, visible()); });
    on("mean ReLU", square, [](auto&) { return attention(kernel::dot_product{}, normalizer::mean_relu{}, visible()); });
    on("centered ReLU", square,
       [](auto&) { return attention(kernel::dot_product{}, normalizer::centered_relu{}, visible()); });
  } else if constexpr (Group == 11) {
    on("per-head scales", square,
       [](auto& of) { return attention(kernel::dot_product{.scale = of.numbers(4, 1, 1)}, visible()); });
    on("key bias", square, [](auto&) { return attention(kernel::dot_product{} + kernel::key_bias{}, visible()); });
    on("scaled RBF", square, [](auto&) { return scaled_rbf_attention(0.05, visible()); });
  } else if constexpr (Group == 12) {
    on("log n", square, [](auto&) { return log_n_attention(64, visible()); });
    on("YaRN", square, [](auto&) { return yarn_attention(4, visible()); });
    on("affine, output gate", square, [](auto&) { return affine_gated_attention(0.8, 0.9, visible()); });
  } else if constexpr (Group == 13) {
    on("scalar Laplacian", square, [](auto&) { return scalar_laplacian_attention(0.5, visible()); });
    on("inverse distance", square, [](auto&) { return inverse_distance_attention(1, visible()); });
    on("sliced ReLU", square, [](auto&) { return sliced_relu_attention<sliced_relu_form::sum>(visible()); });
  } else if constexpr (Group == 14) {
    sizes probabilities = square;
    probabilities.positive_bias = true;
    on("GOAT", probabilities, [](auto&) { return goat_attention(8, visible()); });
    on("GOAT, Fourier", square, [](auto& of) {
      return goat_fourier_attention(8, {of.numbers(4, 5, 1), of.numbers(4, 5, 1), of.numbers(4, 5, 1)}, visible());
    });
    on("Gaussian", square, [](auto&) { return gaussian_attention(20, visible()); });
  }
}

}  // namespace attune::cuda_check
