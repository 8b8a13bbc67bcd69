// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Rotary kernels of every kind, for problems with 2 batch elements: layouts, partial, counted and given positions, float
// and double angles, stored keys, an attention factor.
#pragma once

#include <vector>

#include <attune/policies/kernel/alibi.hpp>
#include <attune/policies/kernel/rotary.hpp>

namespace attune::test {

class rotary_configurations {
 public:
  rotary_configurations(index_t queries, index_t keys, index_t width)
      : whole_(rotary_frequencies::plain(width / 2 * 2), keys),
        exact_(rotary_frequencies::plain(width / 2 * 2), keys + 9),
        part_(rotary_frequencies::yarn(width / 4 * 2, 4, 16), keys), of_queries_(given(queries, 0.3, width)),
        of_keys_(given(keys, -0.7, width)) {}

  std::vector<kernel::rotary> kernels() const {
    return {{whole_},
            {.angles = exact_, .layout = rotary_layout::interleaved, .scale = 0.4},
            {.angles = part_},
            {.angles = {of_queries_, of_keys_}, .layout = rotary_layout::interleaved},
            {.angles = whole_, .keys = rotary_keys::turned}};
  }

 private:
  /// Positions of two axes, for two batch elements.
  static rotary_angles<float> given(index_t rows, double step, index_t width) {
    std::vector<double> positions;
    for (index_t n = 0; n < 4 * rows; ++n) positions.push_back(step * double(n % 17) - 2 * double(n % 3));
    return {rotary_frequencies::plain(width / 8 * 2, 10).on_axes(2),
            tensor<double const>(positions, shape{2, 1, rows, 2})};
  }

  rotary_angles<float> whole_;
  rotary_angles<double> exact_;
  rotary_angles<float> part_, of_queries_, of_keys_;
};

}  // namespace attune::test
