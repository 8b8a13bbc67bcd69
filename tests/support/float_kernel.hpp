// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   float_kernel const kernel({4, 128, 128, 32}, storage::bf16, seed);   kernel.judged({.later = 1})
//
// A causal kernel in float on drawn inputs, with something wrong, before the verdict. Independent of attune's executors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <attune/attune.hpp>
#include <attune/testing/verdict.hpp>

namespace attune::test {

struct kernel_extents {
  index_t heads, queries, keys, width;
};
/// Something wrong with a kernel.
struct kernel_change {
  index_t later = 0;  ///< query i sees the keys up to i + offset + later
  float scale = 1;    ///< times the scale
  double lse = 1;     ///< times the lse; 0: none is given
  std::function<float(index_t head, index_t query, index_t feature, float out)> out = nullptr;
};

class float_kernel {
 public:
  float_kernel(kernel_extents const& e, certify::storage stored, std::uint64_t seed) : e_(e), stored_(stored) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    auto const fill = [&](std::vector<float>& to, index_t n) {
      to.resize(std::size_t(n));
      for (float& x : to) x = float(certify::rounded_to(stored, normal(random)));
    };
    fill(q_, e.heads * e.queries * e.width);
    fill(k_, e.heads * e.keys * e.width);
    fill(v_, e.heads * e.keys * e.width);
  }
  testing::verdict_report judged(kernel_change const& wrong) const {
    shape const queries{1, e_.heads, e_.queries, e_.width}, keys{1, e_.heads, e_.keys, e_.width};
    results const got = run(wrong);
    testing::candidate given(tensor<double const>(got.out, queries), stored_);
    if (wrong.lse != 0) given.with_lse(natural_lse(tensor<float const>(got.lse, {1, e_.heads, e_.queries, 1})));
    inputs<decltype(op_), any_tensor> const in{
        .q = tensor<float const>(q_, queries), .k = tensor<float const>(k_, keys), .v = tensor<float const>(v_, keys)};
    return testing::verdict(op_, in, given, {.how = certify::precision(stored_)});
  }

 private:
  struct results {
    std::vector<double> out;
    std::vector<float> lse;
  };
  results run(kernel_change const& wrong) const {
    results to;
    std::size_t const width = std::size_t(e_.width);
    float const scale = wrong.scale / std::sqrt(float(e_.width));
    for (index_t h = 0; h < e_.heads; ++h)
      for (index_t i = 0; i < e_.queries; ++i) {
        index_t const end = std::clamp<index_t>(i + 1 + e_.keys - e_.queries + wrong.later, 0, e_.keys);
        float const* const q = q_.data() + std::size_t(h * e_.queries + i) * width;
        std::vector<float> logits, sums(width, 0);
        float top = -INFINITY, sum = 0;
        for (index_t j = 0; j < end; ++j) {
          float const* const k = k_.data() + std::size_t(h * e_.keys + j) * width;
          float s = 0;
          for (std::size_t c = 0; c < width; ++c) s += q[c] * k[c];
          logits.push_back(s * scale);
          top = std::fmax(top, logits.back());
        }
        for (index_t j = 0; j < end; ++j) {
          float const w = std::exp(logits[std::size_t(j)] - top), narrow = float(certify::rounded_to(stored_, w));
          sum += w;
          for (std::size_t c = 0; c < width; ++c) sums[c] += narrow * v_[std::size_t(h * e_.keys + j) * width + c];
        }
        for (std::size_t c = 0; c < width; ++c) {
          float const x = end == 0 ? 0 : sums[c] / sum;
          to.out.push_back(certify::rounded_to(stored_, wrong.out ? wrong.out(h, i, index_t(c), x) : x));
        }
        to.lse.push_back(float(wrong.lse * (double(top) + std::log(double(sum)))));
      }
    return to;
  }

  kernel_extents e_;
  certify::storage stored_;
  decltype(softmax_attention(mask::causal{})) op_ = softmax_attention(mask::causal{});
  std::vector<float> q_, k_, v_;
};

}  // namespace attune::test
