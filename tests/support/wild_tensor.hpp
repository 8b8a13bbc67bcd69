// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Tensors as careless callers make them: extents that fit or do not, any layout, memory exactly as long as what the
// view reaches, so that a sanitizer sees one element too many.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <attune/core/tensor.hpp>

#include "random.hpp"

namespace attune::test {

/// What becomes of a tensor's extents.
enum class mishap { none, one_more, one_less, empty, absent, overflowing, negative, swapped };

/// A view of floats, and its memory. Until `view` is called nothing can throw.
class wild_tensor {
 public:
  static constexpr float untouched = 777;

  wild_tensor() = default;
  wild_tensor(shape const& wanted, mishap what, bool is_output, rng& random) : absent_(what == mishap::absent) {
    extent_ = {wanted.batch, wanted.head, wanted.position, wanted.feature};
    auto const axis = [&] { return std::size_t(random.between(0, 3)); };
    constexpr index_t huge = index_t(1) << 32;
    switch (what) {
      case mishap::one_more:
        ++extent_[axis()];
        break;
      case mishap::one_less:
        if (auto const a = axis(); extent_[a] > 0) --extent_[a];
        break;
      case mishap::empty:
        extent_[axis()] = 0;
        break;
      case mishap::overflowing: {  // a single huge extent is legal, and wants huge memory
        auto const a = axis();
        extent_[a] = huge;
        extent_[(a + std::size_t(random.between(1, 3))) % 4] =
            random.pick({huge, index_t(1) << 61, (std::numeric_limits<index_t>::max)()});
        break;
      }
      case mishap::negative:
        extent_[axis()] = random.pick<index_t>({-1, -5, (std::numeric_limits<index_t>::min)()});
        break;
      case mishap::swapped:
        std::swap(extent_[axis()], extent_[axis()]);
        break;
      default:
        break;
    }
    lay_out(is_output, random);
    for (float& x : memory_) x = is_output ? untouched : float(random.normal());
  }

  /// Throws attune::error as tensor does.
  tensor<float> view() {
    if (absent_) return {};
    return {memory_.data() + base_,
            {extent_[0], extent_[1], extent_[2], extent_[3]},
            {step_[0], step_[1], step_[2], step_[3]}};
  }
  tensor<float const> read() { return view(); }
  bool absent() const { return absent_; }
  /// Some of its elements share memory.
  bool coincides() const { return !absent_ && coincides_; }

  /// Nothing has been written: nothing anywhere, or nothing outside the view.
  bool untouched_everywhere() const {
    return std::all_of(memory_.begin(), memory_.end(), [](float x) { return x == untouched; });
  }
  bool untouched_outside() const {
    std::vector<bool> inside(memory_.size());
    for_each([&](index_t at) { inside[std::size_t(at)] = true; });
    for (std::size_t n = 0; n < memory_.size(); ++n)
      if (!inside[n] && memory_[n] != untouched) return false;
    return true;
  }

 private:
  template <class Visit>
  void for_each(Visit const& visit) const {
    if (!storable_) return;
    for (index_t b = 0; b < extent_[0]; ++b)
      for (index_t h = 0; h < extent_[1]; ++h)
        for (index_t i = 0; i < extent_[2]; ++i)
          for (index_t d = 0; d < extent_[3]; ++d)
            visit(base_ + b * step_[0] + h * step_[1] + i * step_[2] + d * step_[3]);
  }
  /// Axes in any order, gaps, backward; inputs may repeat an axis, outputs may by accident.
  void lay_out(bool is_output, rng& random) {
    std::array<int, 4> order{0, 1, 2, 3};
    if (random.chance(0.5))
      for (int n = 3; n > 0; --n) std::swap(order[std::size_t(n)], order[std::size_t(random.between(0, n))]);
    index_t step = 1;
    for (int n = 3; n >= 0; --n) {
      auto const axis = std::size_t(order[std::size_t(n)]);
      step_[axis] = step;
      index_t const gap = random.chance(0.2) ? random.between(1, 3) : 0;
      index_t const room = (std::max)(extent_[axis], index_t(1));
      if (extent_[axis] < 0 || room > 100000 || __builtin_mul_overflow(step, room + gap, &step) || step > 100000) {
        step = 1;
        storable_ = false;
      }
      if (random.chance(0.1)) step_[axis] = -step_[axis];
    }
    if (storable_ && random.chance(is_output ? 0.1 : 0.15)) {
      auto const axis = std::size_t(random.between(0, 3));
      index_t const other = is_output && random.chance(0.5) ? step_[std::size_t(random.between(0, 3))] : 0;
      step_[axis] = other;
    }
    memory_.resize(1);
    if (!storable_) return;
    index_t low = 0, high = 0;
    for (std::size_t a = 0; a < 4; ++a) {
      if (extent_[a] == 0) return;
      (step_[a] < 0 ? low : high) += (extent_[a] - 1) * step_[a];
    }
    base_ = -low;
    memory_.resize(std::size_t(high - low + 1));
    std::vector<bool> seen(memory_.size());
    for_each([&](index_t at) {
      coincides_ = coincides_ || seen[std::size_t(at)];
      seen[std::size_t(at)] = true;
    });
  }

  std::array<index_t, 4> extent_{0, 0, 0, 0}, step_{};
  index_t base_ = 0;
  std::vector<float> memory_ = std::vector<float>(1, untouched);
  bool absent_ = true, coincides_ = false, storable_ = true;
};

}  // namespace attune::test
