// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   S^T[key][query] = sum_c K[key][c] . Q^T[c][query]      O^T[dv][query] += sum_c V[c][dv] . P^T[c][query]
//   dV[key][d] += sum_c P[key][c] . dO[c][d]
//
// The products of the forward and the backward pass, by unit. A unit that adds pair by pair has them from the kernels
// of float products, with its own step; tiles.hpp has the units that add 16 pairs together.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include <attune/exec/cpu/bf16/bfmmla.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/outer.hpp>
#include <attune/exec/cpu/products/pairs.hpp>

namespace attune::exec_cpu {

/// Values, or keys, of a block as pairs of keys.
struct paired_values {
  number_pair const* data;
  index_t of_pair, of_feature;  ///< distances
  number_pair at(index_t c, index_t d) const { return data[c * of_pair + d * of_feature]; }
};

namespace detail {

inline constexpr int transposed_together = 16;
using line_of_pairs = typename attune::detail::vector_of<number_pair, transposed_together>::type;

/// Swaps the blocks of Size x Size pairs that are on the other side of the diagonal in two rows.
template <int Size, std::size_t... L>
ATTUNE_INLINE void swap_blocks(line_of_pairs& a, line_of_pairs& b, std::index_sequence<L...>) {
  constexpr int n = transposed_together;
  line_of_pairs const first = __builtin_shufflevector(a, b, ((int(L) & Size) != 0 ? n + int(L) - Size : int(L))...);
  b = __builtin_shufflevector(a, b, ((int(L) & Size) != 0 ? n + int(L) : int(L) + Size)...);
  a = first;
}
template <int Size>
ATTUNE_INLINE void swap_blocks(line_of_pairs (&rows)[transposed_together]) {
#pragma GCC unroll 16
  for (int r = 0; r < transposed_together; ++r)
    if ((r & Size) == 0) swap_blocks<Size>(rows[r], rows[r + Size], std::make_index_sequence<transposed_together>{});
}

}  // namespace detail

/// to[d][c] = from[c][d] for 16 rows c and n columns d. Rows of `to` are `step` apart.
ATTUNE_NOINLINE inline void transpose_16_rows(number_pair* ATTUNE_RESTRICT to, index_t step,
                                              number_pair const* ATTUNE_RESTRICT from, index_t n) {
  constexpr int together = detail::transposed_together;
  index_t d = 0;
  for (; d + together <= n; d += together) {
    detail::line_of_pairs rows[together];
#pragma GCC unroll 16
    for (int c = 0; c < together; ++c) std::memcpy(&rows[c], from + c * n + d, sizeof rows[c]);
    detail::swap_blocks<1>(rows);
    detail::swap_blocks<2>(rows);
    detail::swap_blocks<4>(rows);
    detail::swap_blocks<8>(rows);
#pragma GCC unroll 16
    for (int c = 0; c < together; ++c) std::memcpy(to + (d + c) * step, &rows[c], sizeof rows[c]);
  }
  for (; d < n; ++d)
    for (int c = 0; c < together; ++c) to[d * step + c] = from[c * n + d];
}

/// A session (amx.hpp) of a unit that has nothing to prepare.
struct no_session {
  explicit no_session(index_t) {}
};

/// The products of a unit that adds pair by pair.
template <class Unit>
struct pair_multiplier {
  static constexpr index_t together = 1;     ///< pairs that are added together
  static constexpr bool by_feature = false;  ///< whether the pairs of a feature are contiguous in pairs of keys
  /// Lives while a thread multiplies a block or more. pairs: of the features of a query.
  using session = no_session;
  /// The step of the kernels.
  using unit_step =
      std::conditional_t<std::is_same_v<Unit, bf16_instructions> && has_bfdot, block_step, pair_step<Unit>>;

  /// out[j][query] = sum of the products of n keys with a tile's queries, for `pairs` pairs of features.
  template <class Arch>
  static void contract(float* out, number_pair const* keys, index_t step, number_pair const* queries, index_t pairs,
                       index_t n) {
    exec_cpu::contract<float, Arch>(out, keys, step, queries, pairs, n, unit_step{});
  }
  /// out[d][query] += sum over n pairs of keys.
  template <class Arch>
  static void accumulate(float* out, paired_values const& values, number_pair const* weights, index_t n,
                         index_t width) {
    exec_cpu::accumulate<float, Arch>(out, values.data, values.of_pair, weights, n, width, unit_step{});
  }
  /// out[j][d] += sum over pairs of queries of weights[j][pair] . rows[pair][d], for n keys and the features of a
  /// panel.
  template <class Arch>
  static void outer(float* out, index_t step, number_pair const* weights, number_pair const* rows, index_t pairs,
                    index_t n) {
    in_register_blocks<tiling<float, Arch>::rows>(n, [&](auto together_now, index_t j, index_t last) {
      detail::outer_rows<float, Arch, together_now(), unit_step>(out, step, weights, rows, pairs, j, last);
    });
  }

  /// One batch of sums, with the operations of the products above in their order.
  template <class Arch>
  class sum {
   public:
    using batch = xsimd::batch<float, Arch>;
    using pairs = xsimd::batch<number_pair, Arch>;
    sum() : at_(nullptr), acc_(0.0f) {}
    explicit sum(float* at) : at_(at), acc_(0.0f) {}
    /// Pair number c.
    void add(index_t, pairs const& a, pairs const& b) { acc_ = Unit::add_products(acc_, a, b); }
    void add(index_t, two_floats<Arch> const& a, two_floats<Arch> const& b) { acc_ = Unit::add_floats(acc_, a, b); }
    /// The sum of n pairs, as `contract` has it.
    batch total(index_t) const { return acc_; }
    /// Adds n pairs to memory, as `accumulate` and `outer` do.
    void finish(index_t) const { (batch::load_unaligned(at_) + acc_).store_unaligned(at_); }

   private:
    float* at_;
    batch acc_;
  };
};

}  // namespace attune::exec_cpu
