// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   S^T[key][query] = sum_c K[key][c] . Q^T[c][query]      O^T[dv][query] += sum_c V[c][dv] . P^T[c][query]
//
// The two products of a tile on pairs of bf16 numbers: c counts pairs of features, then pairs of keys. Queries are
// paired once per tile, keys and values once per block for all tiles of a task, the masses of a block by each tile.
// Pairs of keys begin at even keys, so no bit depends on where a block or a row's keys begin.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/products/pairs.hpp>
#include <attune/exec/cpu/tile/masses.hpp>

namespace attune::exec_cpu {

/// Keys of a block as pairs of features: key `first` at `data`, the next one `step` pairs later.
struct paired_keys {
  number_pair const* data;
  index_t step, first;
};

/// How tiles multiply pairs of bf16 numbers. Plain dot products of inputs are products of pairs; other contractions are
/// computed in float.
template <class Unit>
struct pair_products {
  static constexpr bool of_pairs = true;
  template <class C>
  static constexpr bool reads_paired_keys = contraction::PlainProduct<C>;
  template <class C, class Arch>
  struct pair_contractor {
    static constexpr int queries = tiling<float, Arch>::queries;
    static index_t resident(problem_shape const& p) { return padded<float>(queries * pairs_of(p.width_of(C::x::of))); }
    template <class In, class Owner>
    static void pack(float* to, In const& in, Owner const&, tile_place const& at) {
      pack_query_pairs<queries>(reinterpret_cast<number_pair*>(to), member<C::x::of>(in), at.b, at.h, at.first);
    }
    template <class Memory>
    static void run(float* to, float const* q, tile_place const& at, key_block_place const& block, Memory const& memory,
                    int number) {
      paired_keys const keys = memory.keys_of(*at.p, number);
      contract<float, Arch>(to, keys.data + (block.first - keys.first) * keys.step, keys.step,
                            reinterpret_cast<number_pair const*>(q), keys.step, block.n, pair_step<Unit>{});
    }
  };
  template <class C, class T, class Arch>
  using contractor =
      std::conditional_t<contraction::PlainProduct<C>, pair_contractor<C, Arch>, exec_cpu::contractor<C, T, Arch>>;
};

/// Memory shared by all tiles of a thread: the float tiles' memory, and the pairs of a block.
template <class Arch, class Op, class Unit>
struct pair_block_memory : tile_block_memory<float, Arch, Op> {
  using base = tile_block_memory<float, Arch, Op>;
  using products = pair_products<Unit>;
  using contractions = typename Op::contractions;
  static constexpr index_t block = base::types::block;
  static constexpr int queries = base::types::queries;
  /// Value sums of self-adjusted rows are subtracted from one another: they stay products of floats.
  static constexpr bool pairs_values = !base::types::adjusted;

  index_t* first_key;         ///< the first key of the block
  number_pair* key_pairs;     ///< of one contraction after the other: [key][pair of features]
  number_pair* value_pairs;   ///< [pair of keys][feature]
  number_pair* weight_pairs;  ///< of a tile: [pair of keys][query]
  bfloat16* value_rows;       ///< two rows of values, then a row of zeros

  pair_block_memory(arena<float>& from, problem_shape const& p)
      : base(from, p), first_key(reinterpret_cast<index_t*>(from.take(padded<float>(1)))),
        key_pairs(reinterpret_cast<number_pair*>(from.take(block * pairs_of_keys(p, contractions::size)))),
        value_pairs(reinterpret_cast<number_pair*>(from.take((block / 2 + 1) * p.value_width))),
        weight_pairs(reinterpret_cast<number_pair*>(from.take((block / 2 + 1) * queries))),
        value_rows(reinterpret_cast<bfloat16*>(from.take(3 * 2 * pairs_of(p.value_width)))) {}

  /// Whether a tile reads a field of the keys as floats.
  static constexpr bool reads_floats(field f) {
    if (f == field::v) return !pairs_values || Op::has_value_gate || Op::normalizer_is.uniform_share;
    return f == field::value_gate || !paired_alone(f);
  }

  /// Pairs the keys and values [from, to) of a head of the inputs. `at` names the batch element and the head.
  template <class View>
  void pack(inputs<Op, View> const& in, problem_shape const& p, tile_place const& at, index_t from, index_t to) const {
    *first_key = from;
    number_pair* next = key_pairs;
    each_paired([&]<class C>(C, int) {
      index_t const width = p.width_of(C::y::of), head = p.group(at.h, p.heads_of(C::y::of));
      auto const& x = member<C::y::of>(in);
      for (index_t j = from; j < to; ++j, next += pairs_of(width))
        pair_row(reinterpret_cast<bfloat16*>(next), x.row(at.b, head, j), x.steps().feature, width);
      next += (block - (to - from)) * pairs_of(width);
    });
    if constexpr (pairs_values) pack_values(in, p, at, from, to);
  }

  /// The keys of contraction `number`, which is a plain product.
  paired_keys keys_of(problem_shape const& p, int number) const {
    index_t const before = pairs_of_keys(p, number);
    return {key_pairs + block * before, pairs_of_keys(p, number + 1) - before, *first_key};
  }

 private:
  /// Calls visit(contraction, its number) for each plain product.
  template <class Visit>
  static void each_paired(Visit const& visit) {
    [&]<class... C>(contraction::list<C...>) {
      int number = 0;
      auto const one = [&]<class Of>(Of c) {
        if constexpr (contraction::PlainProduct<Of>) visit(c, number);
        ++number;
      };
      (..., one(C{}));
    }(contractions{});
  }
  /// The pairs of one key in the contractions before contraction `number`.
  static index_t pairs_of_keys(problem_shape const& p, int number) {
    index_t sum = 0;
    each_paired([&]<class C>(C, int n) { sum += n < number ? pairs_of(p.width_of(C::y::of)) : 0; });
    return sum;
  }
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
    number_pair* next = value_pairs;
    for (index_t j = from / 2 * 2; j < to; j += 2, next += width) {
      bfloat16 const* half[2];
      for (index_t n = 0; n < 2; ++n) {
        half[n] = value_rows + 2 * row;
        if (j + n < from || j + n >= to) continue;
        half[n] = value_rows + n * row;
        if constexpr (Op::has_value_gate) {
          pair_row(value_rows + n * row, this->gated + (j + n - from) * width, 1, width);
        } else {
          auto const* const x = in.v.row(at.b, p.group(at.h, p.value_heads), j + n);
          pair_row(value_rows + n * row, x, in.v.steps().feature, width);
        }
      }
      pair_rows(next, half[0], half[1], width);
    }
  }
};

namespace detail {

/// The masses of n keys in pairs: [pair][query]. `lead` keys before the first one, 0 or 1, have mass 0.
template <class Unit, class Arch>
ATTUNE_NOINLINE void pair_weights(number_pair* to, float const* weights, index_t lead, index_t n) {
  using tile = tiling<float, Arch>;
  using batch = typename tile::batch;
  auto const mass = [&](index_t j, int v) {
    return j < 0 || j >= n ? batch(0.0f) : batch::load_aligned(weights + j * tile::queries + v * tile::lanes);
  };
  for (index_t j = -lead; j < n; j += 2, to += tile::queries)
    for (int v = 0; v < tile::vectors; ++v)
      Unit::rounded(mass(j, v), mass(j + 1, v)).store_aligned(to + v * tile::lanes);
}

/// The sum of `accumulate` over pairs, but unseen values count as 0 if they are not finite: 0 * NaN would be NaN. Keys
/// outside [full_first, full_last) count for the lanes in their bits. Operations have the order of `accumulate`.
template <class Unit, class Arch>
ATTUNE_NOINLINE void accumulate_seen_pairs(float* sum, number_pair const* values, index_t width,
                                           number_pair const* weights, index_t lead, seen_block const& s,
                                           std::uint64_t const* bits) {
  using tile = tiling<float, Arch>;
  using batch = typename tile::batch;
  using pairs = xsimd::batch<number_pair, Arch>;
  auto const seen_by = [&](index_t j) {
    if (j < 0 || j >= s.n) return std::uint64_t(0);
    return j >= s.full_first && j < s.full_last ? ~std::uint64_t(0) : bits[j];
  };
  for (index_t d = 0; d < width; ++d)
    for (int v = 0; v < tile::vectors; ++v) {
      batch acc(0.0f);
      for (index_t j = -lead, c = 0; j < s.n; j += 2, ++c) {
        number_pair const x = values[c * width + d], known = finite_or_zero(x);
        std::uint64_t const first = seen_by(j) >> (v * tile::lanes), second = seen_by(j + 1) >> (v * tile::lanes);
        alignas(64) number_pair own[tile::lanes];
        for (int l = 0; l < tile::lanes; ++l) {
          number_pair const seen = (first >> l & 1 ? 0xffffu : 0u) | (second >> l & 1 ? 0xffff0000u : 0u);
          own[l] = (x & seen) | (known & ~seen);
        }
        acc = Unit::add_products(acc, pairs::load_aligned(own),
                                 pairs::load_aligned(weights + c * tile::queries + v * tile::lanes));
      }
      float* const at = sum + d * tile::queries + v * tile::lanes;
      (batch::load_aligned(at) + acc).store_aligned(at);
    }
}

}  // namespace detail

/// The masses of a block are rounded and multiplied by the values in pairs of keys.
template <class Arch, class Op, class Unit>
void add_weighted_values(tile_view<float, Arch, Op> const& tile, row_block<float> const& floats, seen_block const& s,
                         float const* weights, std::uint64_t const* bits, float* sum,
                         pair_block_memory<Arch, Op, Unit> const& memory) {
  if constexpr (!pair_block_memory<Arch, Op, Unit>::pairs_values) {
    add_values(tile, floats, s, weights, bits, sum);
  } else {
    index_t const width = tile.p->value_width, lead = s.first % 2, n = pairs_of(s.n + lead);
    number_pair const* const values = memory.value_pairs + (s.first / 2 - *memory.first_key / 2) * width;
    detail::pair_weights<Unit, Arch>(memory.weight_pairs, weights, lead, s.n);
    // Pairs with a key that some row does not see.
    index_t const before = pairs_of(s.full_first + lead), after = (std::max)(before, (s.full_last + lead) / 2);
    if (finite_pairs(values, before * width) && finite_pairs(values + after * width, (n - after) * width))
      accumulate<float, Arch>(sum, values, width, memory.weight_pairs, n, width, pair_step<Unit>{});
    else
      detail::accumulate_seen_pairs<Unit, Arch>(sum, values, width, memory.weight_pairs, lead, s, bits);
  }
}

/// The tile whose products are products of pairs.
template <class Arch, class Op, class Unit>
using pair_tile = mass_tile<float, Arch, Op, pair_block_memory<Arch, Op, Unit>>;

}  // namespace attune::exec_cpu
