// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum += (x_0 y_0 + x_2 y_2 + ...) + (x_1 y_1 + x_3 y_3 + ...)      16 pairs of bf16 together
//
// Products of bf16 by tiles (amx.hpp), and their twin. Groups of pairs begin at multiples of 16 pairs of features, and
// of 32 keys of the tensor, so no bit of forward() depends on where a block or a row's keys begin. Keys that a group
// lacks count as 0.
#pragma once

#include <attune/exec/cpu/bf16/amx.hpp>
#include <attune/exec/cpu/bf16/multiply.hpp>

namespace attune {

/// The products of `amx_tiles` by other instructions, on any machine, slower than float products. forward() has the
/// same bits on any machine, vjp() on machines with vectors of 512 bits.
struct amx_emulated : bf16_emulated {
  using twin = amx_emulated;
  static constexpr bool of_tiles = false;
};

/// Products of bf16 by the tiles of AMX (`TDPBF16PS`; Sapphire Rapids and later, Linux 5.16 and later), in forward()
/// and vjp(). Compile with -march=sapphirerapids, or with -mamx-bf16 -mamx-tile -mavx512bf16. The call throws
/// attune::error if the system refuses tiles. Policies and masks must not use tiles. See `cpu_bf16_products`.
struct amx_tiles : bf16_instructions {
  static constexpr bool there = exec_cpu::has_amx;
  using twin = amx_emulated;
  static constexpr bool of_tiles = exec_cpu::has_amx;
  static bool lent() { return exec_cpu::amx_refusal() == 0; }  ///< whether the system lends tiles
  static void enter(char const* function) { exec_cpu::enter_amx(function); }
};

namespace exec_cpu {

/// The sum of one row and a batch of columns, in the order of TDPBF16PS.
template <class Arch>
class tile_sum {
 public:
  using batch = xsimd::batch<float, Arch>;
  using pairs = xsimd::batch<number_pair, Arch>;
  tile_sum() : tile_sum(batch(0.0f)) {}
  explicit tile_sum(batch const& start) : sum_(flushed(start)), lower_(0.0f), upper_(0.0f) {}
  explicit tile_sum(float* at) : tile_sum(batch::load_unaligned(at)) { at_ = at; }

  void add(index_t c, pairs const& a, pairs const& b) { add(c, two_floats<Arch>::of(a), two_floats<Arch>::of(b)); }
  void add(index_t c, two_floats<Arch> const& a, two_floats<Arch> const& b) {
    lower_ = flushed(fused(flushed(a.low), flushed(b.low), lower_));
    upper_ = flushed(fused(flushed(a.high), flushed(b.high), upper_));
    if (c % tile_pairs == tile_pairs - 1) close();
  }
  /// The sum of n pairs. A group that add() has closed is not added again: a sum of -0 stays -0.
  batch total(index_t n) {
    if (n % tile_pairs != 0) close();
    return sum_;
  }
  void finish(index_t n) { total(n).store_unaligned(at_); }

 private:
  void close() {
    sum_ = flushed(batch(sum_ + flushed(simd::as_computed(batch(lower_ + upper_)))));
    lower_ = upper_ = batch(0.0f);
  }
  batch sum_, lower_, upper_;
  float* at_ = nullptr;
};

/// The products of a unit that adds 16 pairs together.
template <class Unit>
struct tile_multiplier {
  static constexpr index_t together = tile_pairs;
  static constexpr bool by_feature = true;
  using session = std::conditional_t<Unit::of_tiles, amx_session, no_session>;
  template <class Arch>
  using sum = tile_sum<Arch>;

  template <class Arch>
  static void contract(float* out, number_pair const* keys, index_t step, number_pair const* queries, index_t pairs,
                       index_t n) {
    multiply<Arch, false>(out, tiling<float, Arch>::queries, keys, step, queries, pairs, n);
  }
  template <class Arch>
  static void accumulate(float* out, paired_values const& values, number_pair const* weights, index_t n,
                         index_t width) {
    multiply<Arch, true>(out, tiling<float, Arch>::queries, values.data, values.of_feature, weights, n, width);
  }
  template <class Arch>
  static void outer(float* out, index_t step, number_pair const* weights, number_pair const* rows, index_t pairs,
                    index_t n) {
    multiply<Arch, true>(out, step, weights, tiling<float, Arch>::lanes, rows, pairs, n);
  }

 private:
  template <class Arch, bool Onto>
  static void multiply(float* out, index_t out_step, number_pair const* a, index_t step, number_pair const* b,
                       index_t pairs, index_t n) {
    if constexpr (Unit::of_tiles)
      multiply_by_tiles<Onto>(out, out_step, a, step, b, pairs, n);
    else
      emulated<Arch, Onto>(out, out_step, a, step, b, pairs, n);
  }
  template <class Arch, bool Onto>
  ATTUNE_NOINLINE static void emulated(float* out, index_t out_step, number_pair const* a, index_t step,
                                       number_pair const* b, index_t pairs, index_t n) {
    using tile = tiling<float, Arch>;
    using batch = typename tile::batch;
    for (index_t j = 0; j < n; ++j)
      for (int v = 0; v < tile::vectors; ++v) {
        float* const at = out + j * out_step + v * tile::lanes;
        tile_sum<Arch> sum(Onto ? batch::load_unaligned(at) : batch(0.0f));
        for (index_t c = 0; c < pairs; ++c)
          sum.add(c, xsimd::batch<number_pair, Arch>(a[j * step + c]),
                  xsimd::batch<number_pair, Arch>::load_aligned(b + c * tile::queries + v * tile::lanes));
        sum.total(pairs).store_unaligned(at);
      }
  }
};

template <>
struct pair_multiplier<amx_tiles> : tile_multiplier<amx_tiles> {};
template <>
struct pair_multiplier<amx_emulated> : tile_multiplier<amx_emulated> {};

}  // namespace exec_cpu
}  // namespace attune
