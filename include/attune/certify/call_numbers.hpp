// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   n.at_out(b, h, i, d), n.at_lse(b, h, i), n.at_ground_weight(b, h, i)
//
// A value for each number that a call returns: an error bound, or an enclosure.
#pragma once

#include <vector>

#include <attune/exec/problem.hpp>

namespace attune::certify {

/// out (B, H, Lq, Dv), the rest (B, H, Lq, 1), row-major. Empty where the operator has no such output.
template <class Number>
struct call_numbers {
  problem_shape extents;    ///< of the call
  std::vector<Number> out,  ///< (B, H, Lq, Dv)
      lse,                  ///< (B, H, Lq, 1)
      ground_weight;        ///< (B, H, Lq, 1)

  /// Element d of `out` for row (b, h, i); not checked.
  Number const& at_out(index_t b, index_t h, index_t i, index_t d) const {
    return out[std::size_t(row_number(b, h, i) * extents.value_width + d)];
  }
  /// The lse of row (b, h, i); not checked.
  Number const& at_lse(index_t b, index_t h, index_t i) const { return lse[std::size_t(row_number(b, h, i))]; }
  /// The ground weight of row (b, h, i); not checked.
  Number const& at_ground_weight(index_t b, index_t h, index_t i) const {
    return ground_weight[std::size_t(row_number(b, h, i))];
  }

 protected:
  /// The index of row (b, h, i) in an array with one number per row.
  index_t row_number(index_t b, index_t h, index_t i) const { return (b * extents.heads + h) * extents.queries + i; }
};

}  // namespace attune::certify
