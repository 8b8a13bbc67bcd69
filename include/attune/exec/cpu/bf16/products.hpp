// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   S^T[key][query] = sum_c K[key][c] . Q^T[c][query]      O^T[dv][query] += sum_c V[c][dv] . P^T[c][query]
//
// The two products of a tile on pairs of bf16 numbers: c counts pairs of features (keys.hpp), then pairs of keys.
// Values are paired once per block for all tiles of a task, the masses of a block by each tile (groups.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include <attune/exec/cpu/bf16/groups.hpp>
#include <attune/exec/cpu/bf16/keys.hpp>
#include <attune/exec/cpu/tile/masses.hpp>

namespace attune::exec_cpu {

/// The memory of the forward pass: also the values of a block as pairs of keys, and the masses of a tile.
template <class Arch, class Op, class Unit>
struct pair_block_memory : pair_key_memory<Arch, Op, Unit> {
  using base = pair_key_memory<Arch, Op, Unit>;
  using base::block;
  using contractions = typename Op::contractions;
  using groups = paired_groups<Unit, block>;
  static constexpr int queries = base::types::queries;
  /// Value sums of self-adjusted rows are subtracted from one another: they stay products of floats.
  static constexpr bool pairs_values = !base::types::adjusted;

  number_pair* value_pairs;   ///< in groups
  number_pair* weight_pairs;  ///< of a tile: [pair of keys][query]
  bfloat16* value_rows;       ///< two rows of values, then a row of zeros
  number_pair* group;         ///< a group, before it is transposed

  pair_block_memory(arena<float>& from, problem_shape const& p)
      : base(from, p), value_pairs(reinterpret_cast<number_pair*>(from.take(groups::size(p.value_width)))),
        weight_pairs(reinterpret_cast<number_pair*>(from.take(groups::size(queries)))),
        value_rows(reinterpret_cast<bfloat16*>(from.take(3 * 2 * pairs_of(p.value_width)))),
        group(reinterpret_cast<number_pair*>(from.take(groups::room(p.value_width)))) {}

  /// Whether a tile reads a field of the keys as floats.
  static constexpr bool reads_floats(field f) {
    if (f == field::v) return !pairs_values || Op::has_value_gate || Op::normalizer_is.uniform_share;
    return f == field::value_gate || !paired_alone(f);
  }

  /// Pairs the keys and values [from, to) of a head of the inputs. `at` names the batch element and the head.
  template <class View>
  void pack(inputs<Op, View> const& in, problem_shape const& p, tile_place const& at, index_t from, index_t to) const {
    this->pack_keys(in, p, at, from, to);
    if constexpr (pairs_values) pack_values(in, p, at, from, to);
  }

 private:
  /// Whether plain products read the field and no other contraction may.
  static constexpr bool paired_alone(field f) {
    return [&]<class... C>(contraction::list<C...>) {
      bool paired = false, others = false;
      auto const one = [&]<class Of>(Of) {
        if constexpr (contraction::PlainProduct<Of>)
          paired = paired || Of::y::of == f;
        else
          others = true;
      };
      (..., one(C{}));
      return paired && !others;
    }(contractions{});
  }
  template <class View>
  void pack_values([[maybe_unused]] inputs<Op, View> const& in, problem_shape const& p, tile_place const& at,
                   index_t from, index_t to) const {
    index_t const width = p.value_width, row = 2 * pairs_of(width);
    std::fill_n(value_rows + 2 * row, row, bfloat16());
    groups::pack(value_pairs, group, from, to, width, [&](index_t j, int n) {
      if (j < from || j >= to) return value_rows + 2 * row;
      bfloat16* const rounded = value_rows + n * row;
      if constexpr (Op::has_value_gate)
        pair_row(rounded, this->gated + (j - from) * width, 1, width);
      else
        pair_row(rounded, in.v.row(at.b, p.group(at.h, p.value_heads), j), in.v.steps().feature, width);
      return rounded;
    });
  }
};

namespace detail {

/// The sum of `accumulate` over pairs, but of some numbers those that are not finite count as 0: 0 * NaN would be NaN.
/// counts(pair, lane): ones in the bits of the numbers of `values` that count as they are. Operations have the order of
/// `accumulate`.
template <class Unit, class Arch, class Counts>
ATTUNE_NOINLINE void accumulate_some_pairs(float* to, paired_values const& values, index_t width,
                                           number_pair const* weights, index_t n, Counts const& counts) {
  using tile = tiling<float, Arch>;
  using pairs = xsimd::batch<number_pair, Arch>;
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      typename pair_multiplier<Unit>::template sum<Arch> sum(to + d * tile::queries + v * tile::lanes);
      for (index_t c = 0; c < n; ++c) {
        number_pair const x = values.at(c, d), known = finite_or_zero(x);
        alignas(64) number_pair own[tile::lanes];
        for (int l = 0; l < tile::lanes; ++l) {
          number_pair const seen = counts(c, v * tile::lanes + l);
          own[l] = (x & seen) | (known & ~seen);
        }
        sum.add(c, pairs::load_aligned(own), pairs::load_aligned(weights + c * tile::queries + v * tile::lanes));
      }
      sum.finish(n);
    }
}

/// The numbers of each pair of keys that a query sees, for `accumulate_some_pairs`. Keys outside [full_first,
/// full_last) count for the lanes in their bits.
struct seen_pairs {
  seen_block const& s;
  std::uint64_t const* bits;
  index_t lead;
  number_pair operator()(index_t c, int lane) const {
    index_t const j = 2 * c - lead;
    return (sees(j, lane) ? 0xffffu : 0u) | (sees(j + 1, lane) ? 0xffff0000u : 0u);
  }

 private:
  bool sees(index_t j, int lane) const {
    if (j < 0 || j >= s.n) return false;
    return (j >= s.full_first && j < s.full_last) || (bits[j] >> lane & 1) != 0;
  }
};

}  // namespace detail

/// The masses of a block are rounded and multiplied by the values in pairs of keys.
template <class Arch, class Op, class Unit>
void add_weighted_values(tile_view<float, Arch, Op> const& tile, row_block<float> const& floats, seen_block const& s,
                         float const* weights, std::uint64_t const* bits, float* sum,
                         pair_block_memory<Arch, Op, Unit> const& memory) {
  if constexpr (!pair_block_memory<Arch, Op, Unit>::pairs_values) {
    add_values(tile, floats, s, weights, bits, sum);
  } else {
    using groups = typename pair_block_memory<Arch, Op, Unit>::groups;
    index_t const width = tile.p->value_width, lead = groups::lead(s.first);
    paired_values const values = groups::from_key(memory.value_pairs, *memory.first_key, s.first, width);
    index_t const n = groups::template pair_weights<Arch>(memory.weight_pairs, weights, s.first, s.n);
    // Pairs with a key that some row does not see.
    index_t const before = pairs_of(s.full_first + lead), after = (std::max)(before, (s.full_last + lead) / 2);
    if (groups::finite(values, 0, before, width) && groups::finite(values, after, n, width))
      groups::multiplier::template accumulate<Arch>(sum, values, memory.weight_pairs, n, width);
    else
      detail::accumulate_some_pairs<Unit, Arch>(sum, values, width, memory.weight_pairs, n,
                                                detail::seen_pairs{s, bits, lead});
  }
}

/// The tile whose products are products of pairs.
template <class Arch, class Op, class Unit>
using pair_tile = mass_tile<float, Arch, Op, pair_block_memory<Arch, Op, Unit>>;

}  // namespace attune::exec_cpu
