// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum -> sum e^(m - m')      when the running maximum of a row rises from m to m'
#pragma once

#include <attune/core/simd_math.hpp>

namespace attune::exec_cpu {

/// Scales sums of a row by a factor that is 0 or at least the least weight. A sum that would become subnormal becomes
/// 0. The factor 1 changes nothing.
template <class Batch>
class row_scale {
 public:
  row_scale() = default;
  ATTUNE_INLINE explicit row_scale(Batch const& factor)
      : factor_(factor),
        lowest_(math::select(factor == Batch(1), Batch(0), Batch(scalar<Batch>::least() / factor))) {}
  ATTUNE_INLINE Batch operator()(Batch const& sum) const {
    return math::select(math::abs(sum) < lowest_, Batch(0), sum) * factor_;
  }

 private:
  Batch factor_, lowest_;  ///< lowest: infinite where the factor is 0
};

}  // namespace attune::exec_cpu
