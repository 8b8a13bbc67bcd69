// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sums -> output row:  factor 1, 1 / K or 1 / sum
#pragma once

#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/generic.hpp>

namespace attune::line::detail {

/// Finishes a row of rectified differences by its normalizer; `visible` is K.
template <class W>
ATTUNE_HD finished_row<W> finish_relu(divisor divided_by, W const& mass, W const& visible) {
  auto const as = [&](auto const& normalizer) {
    using type = std::remove_cvref_t<decltype(normalizer)>;
    return finish_masses<type>(typename type::template bound<W>{W(0)}, W(0), mass, W(0), visible);
  };
  if (divided_by == divisor::one) return as(normalizer::relu{});
  return divided_by == divisor::count ? as(normalizer::mean_relu{}) : as(normalizer::normalized_relu{});
}

}  // namespace attune::line::detail
