// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Programs that split rows of floats for tensor cores: x = (first + second) factor, with two fp16 and the power of two
// of the row. The largest number of a row that is finite goes to [2^14, 2^15): products of a whole tile stay far below
// the largest float, and the error is at most 2^-23 |x| or 2^-39 of the largest number, whichever is larger.
#pragma once

#include <attune/exec/cuda/prepare.hpp>

namespace attune::exec_cuda {

/// The factors of rows; negative for a row with a number that is not finite. A row past the last counts as 0.
template <class Feature>
struct row_factor_program {
  Feature feature;
  float* to;
  index_t batch, heads, positions, width, each;  ///< each: factors of a head
  float unit;
  ATTUNE_HD index_t tasks() const { return batch * heads * each; }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const n = task % each, h = task / each % heads, b = task / (each * heads);
    std::uint32_t most = 0;  // the bits of a magnitude grow with it
    bool finite = true;
    for (index_t d = 0; d < width && n < positions; ++d) {
      float const value = feature(b, h, n, d);  // nvcc 13.0 fails to take the bits of a call
      std::uint32_t const x = __builtin_bit_cast(std::uint32_t, value) & 0x7fffffffu;
      if (x >= 0x7f800000u)
        finite = false;
      else
        most = most < x ? x : most;
    }
    std::uint32_t const exponent = most >> 23, down = exponent > 15 ? exponent - 14 : 1;
    float const factor = __builtin_bit_cast(float, down << 23) * unit;
    to[task - n + split_operand::place(n)] = finite ? factor : -factor;
  }
};

/// Both numbers of 8 features a task; 0 past the width. The second number of one that is not finite is 0.
template <class Feature>
struct split_rows_program {
  Feature feature;
  float16* to;
  split_operand of;
  index_t batch, positions, width;
  float unit;
  ATTUNE_HD index_t tasks() const { return batch * of.heads * positions * of.chunks; }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const chunk = task % of.chunks, n = task / of.chunks % positions,
                  h = task / (of.chunks * positions) % of.heads, b = task / (of.chunks * positions * of.heads);
    float const factor = ::fabsf(of.factors_of(b, h)[split_operand::place(n)]) / unit, inverse = 1 / factor;
    float16* const first = to + 8 * task;
    float16* const second = first + of.plane / index_t(sizeof(float16));
    for (index_t d = 8 * chunk; d < 8 * chunk + 8; ++d) {
      float const x = d < width ? feature(b, h, n, d) * inverse : 0.f;
      float16 const head(x);
      float const rest = x - float(head);
      first[d - 8 * chunk] = head;
      second[d - 8 * chunk] = float16(rest == rest ? rest : 0.f);
    }
  }
};

}  // namespace attune::exec_cuda
