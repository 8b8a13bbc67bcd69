// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   h[key][query] = sum_c V[key][c] . dO^T[c][query]       c: pairs of features
//   dV, dK, dQ: pairs of queries and of keys (exec/cpu/bf16/outer.hpp)
//
// How tiles of the backward pass multiply pairs of bf16 numbers. Keys and values are paired once per block for all
// tiles of a task; do, after the output gate, once per tile; weights and gradients by contractions by each tile.
// Everything else of a tile is float.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/bf16/outer.hpp>
#include <attune/exec/cpu/gradients/products.hpp>

namespace attune::exec_cpu {

/// Memory shared by all tiles of a thread: the keys and values of a block as pairs, and the pairs of a tile's numbers.
template <class Arch, class Op, class Unit>
struct pair_gradient_memory : pair_key_memory<Arch, Op, Unit> {
  using base = pair_key_memory<Arch, Op, Unit>;
  using base::block;
  using tile = tiling<float, Arch>;
  using groups = paired_groups<Unit, block>;

  number_pair* value_pairs;  ///< [key][pair of features], after the value gate
  number_pair* key_rows;     ///< of one contraction after the other: in groups
  number_pair* group;        ///< a group, before it is transposed
  number_pair* by_keys;      ///< gradients of a tile: [pair of keys][query]
  number_pair* by_queries;   ///< gradients or weights of a tile: [key][pair of queries]
  bfloat16* zeros;           ///< a row
  float* finite;             ///< by contraction: whether its keys of the block contain neither NaN nor infinity

  pair_gradient_memory(arena<float>& from, problem_shape const& p)
      : base(from, p), value_pairs(take_numbers<number_pair>(from, block * pairs_of(p.value_width))),
        key_rows(take_numbers<number_pair>(from, rows_before(p, base::contractions::size))),
        group(take_numbers<number_pair>(from, groups::room(2 * widest(p)))),
        by_keys(take_numbers<number_pair>(from, groups::size(tile::queries))),
        by_queries(take_numbers<number_pair>(from, block * tile::lanes)),
        zeros(reinterpret_cast<bfloat16*>(from.take(widest(p)))), finite(from.take(base::contractions::size)) {}

  /// Pairs the keys and values [from, to) of a head. `at` names the batch element and the head.
  void pack(inputs<Op, tensor<float const>> const& in, problem_shape const& p, tile_place const& at, index_t from,
            index_t to) const {
    this->pack_keys(in, p, at, from, to);
    std::fill_n(zeros, 2 * widest(p), bfloat16());
    base::each_paired([&]<class C>(C, int number) {
      index_t const width = p.width_of(C::y::of);
      paired_keys const keys = this->keys_of(p, number);
      groups::pack(key_rows + rows_before(p, number), group, from, to, width, [&](index_t j, int) {
        return j < from || j >= to ? zeros : reinterpret_cast<bfloat16 const*>(keys.data + (j - from) * keys.step);
      });
      finite[number] = float(finite_pairs(keys.data, (to - from) * keys.step));
    });
    index_t const step = pairs_of(p.value_width);
    for (index_t j = from; j < to; ++j) {
      auto* const row = reinterpret_cast<bfloat16*>(value_pairs + (j - from) * step);
      if constexpr (Op::has_value_gate)
        pair_row(row, this->gated + (j - from) * p.value_width, 1, p.value_width);
      else
        pair_row(row, in.v.row(at.b, p.group(at.h, p.value_heads), j), in.v.steps().feature, p.value_width);
    }
  }

  /// Pairs of the keys of contraction `number`, a plain product, from key `first` on.
  paired_values rows_of(problem_shape const& p, int number, index_t first, index_t width) const {
    return groups::from_key(key_rows + rows_before(p, number), *this->first_key, first, width);
  }

 private:
  /// The elements of key_rows of the contractions before contraction `number`.
  static index_t rows_before(problem_shape const& p, int number) {
    index_t sum = 0;
    base::each_paired([&]<class C>(C, int n) { sum += n < number ? groups::size(p.width_of(C::y::of)) : 0; });
    return sum;
  }
  /// Pairs of the widest key.
  static index_t widest(problem_shape const& p) {
    index_t most = 0;
    base::each_paired([&]<class C>(C, int) { most = (std::max)(most, pairs_of(p.width_of(C::y::of))); });
    return most;
  }
};

/// The products of a tile with do, rounded to bf16. `packed`: do as pairs of features, [pair][query], then as panels of
/// pairs of queries.
template <class Arch, class Unit>
struct pair_cotangents {
  using tile = tiling<float, Arch>;
  using batch = typename tile::batch;

  static index_t size(problem_shape const& p) { return features(p) + padded<float>(panels_size(p)); }
  /// Rounds d_out, and packs it. Returns whether it contains neither NaN nor infinity.
  template <class Op>
  static bool pack(float* packed, float* d_out, tensor<float const> const&, bool,
                   tile_rows<float, Arch, Op> const& rows) {
    problem_shape const& p = *rows.p;
    auto* const pairs = reinterpret_cast<number_pair*>(packed);
    round_and_pair(pairs, d_out, p.value_width);
    pair_panels<Arch>::from_features(pairs + features(p), pairs, p.value_width, rows.count);
    return finite_pairs(pairs, tile::queries * pairs_of(p.value_width));
  }
  /// <do, x> of a batch of rows, in the order in which `gains` sums. x: [d][query], not rounded.
  static batch inner(float const* d_out, float const* x, index_t width) {
    typename pair_multiplier<Unit>::template sum<Arch> sum;
    auto const two = [&](float const* from, index_t d) {
      batch const first = batch::load_aligned(from + d * tile::queries);
      return two_floats<Arch>{first, d + 1 < width ? batch::load_aligned(from + (d + 1) * tile::queries) : batch(0.0f)};
    };
    for (index_t d = 0; d < width; d += 2) sum.add(d / 2, two(d_out, d), two(x, d));
    return sum.total(pairs_of(width));
  }
  template <class Op, class Memory>
  static void gains(float* gain, float const*, float const* packed, tile_rows<float, Arch, Op> const& rows,
                    inputs<Op, tensor<float const>> const&, seen_block const& s, Memory const& memory, index_t) {
    index_t const step = pairs_of(rows.p->value_width);
    pair_multiplier<Unit>::template contract<Arch>(gain, memory.value_pairs + (s.first - *memory.first_key) * step,
                                                   step, reinterpret_cast<number_pair const*>(packed), step, s.n);
  }
  template <class Memory>
  static void add_to_values(float* to, index_t step, float const* weights, float const* packed, Memory const& memory,
                            index_t count, index_t n, index_t width, bool finite) {
    detail::pair_queries<Unit, Arch>(memory.by_queries, weights, n);
    auto const* const rows =
        reinterpret_cast<number_pair const*>(packed) + padded<float>(tile::queries * pairs_of(width));
    outer_of_pairs<Unit, Arch>(to, step, memory.by_queries, rows, count, n, width, finite);
  }

 private:
  static index_t features(problem_shape const& p) { return padded<float>(tile::queries * pairs_of(p.value_width)); }
  static index_t panels_size(problem_shape const& p) { return pair_panels<Arch>::size(p.value_width); }
  /// pairs[c][query] = features 2 c and 2 c + 1 of x[d][query], which is rounded in place.
  ATTUNE_NOINLINE static void round_and_pair(number_pair* pairs, float* x, index_t width) {
    using bits = xsimd::batch<number_pair, Arch>;
    for (index_t c = 0; c < pairs_of(width); ++c)
      for (int v = 0; v < tile::vectors; ++v) {
        float* const at = x + 2 * c * tile::queries + v * tile::lanes;
        bool const both = 2 * c + 1 < width;
        batch const second = both ? batch::load_aligned(at + tile::queries) : batch(0.0f);
        bits const p = Unit::rounded(batch::load_aligned(at), second);
        p.store_aligned(pairs + c * tile::queries + v * tile::lanes);
        simd::bits_as<float>(simd::shifted_up(p, 16)).store_aligned(at);
        if (both) simd::bits_as<float>(bits(p & bits(0xffff0000u))).store_aligned(at + tile::queries);
      }
  }
};

/// The gradients of a plain product.
template <class C, class Arch, class Unit>
struct pair_contraction_vjp : detail::feature_vjp<C, float, Arch> {
  using base = detail::feature_vjp<C, float, Arch>;
  struct grown {
    float* by_query;      ///< the gradient of the queries, [d][query]
    number_pair* panels;  ///< the queries as panels of pairs
    float* finite;        ///< whether they contain neither NaN nor infinity
    grown(arena<float>& from, problem_shape const& p)
        : by_query(from.take(base::queries * p.width_of(base::query))),
          panels(take_numbers<number_pair>(from, pair_panels<Arch>::size(p.width_of(base::query)))),
          finite(from.take(1)) {}
  };
  using scratch = no_memory;
  template <class Tile, class In, class Owner>
  static void begin(Tile const& t, In const&, Owner const&) {
    index_t const width = t.place.p->width_of(base::query);
    std::fill_n(t.grown.by_query, base::queries * width, 0.0f);
    pair_panels<Arch>::from_features(t.grown.panels, t.packed.q, width, t.count);
    *t.grown.finite = float(finite_pairs(t.packed.q, base::queries * pairs_of(width)));
  }
  /// number: of the contraction.
  template <class Tile, class Memory>
  static void pull(float const* ds, Tile const& t, key_block_place const& b, Memory const& memory, int number,
                   gradient_sinks<float>& to) {
    problem_shape const& p = *t.place.p;
    index_t const width = p.width_of(base::query);
    index_t const pairs = Memory::groups::template pair_weights<Arch>(memory.by_keys, ds, b.first, b.n);
    accumulate_pairs_of_keys<Unit, Arch>(t.grown.by_query, memory.rows_of(p, number, b.first, width), memory.by_keys,
                                         pairs, width, memory.finite[number] != 0.0f);
    key_rows<float> const& rows = to.rows(C::y::of);
    if (rows.data == nullptr) return;
    detail::pair_queries<Unit, Arch>(memory.by_queries, ds, b.n);
    outer_of_pairs<Unit, Arch>(rows.at(b.first), rows.step, memory.by_queries, t.grown.panels, t.count, b.n, width,
                               *t.grown.finite != 0.0f);
  }
};

template <class Unit>
struct gradient_products<pair_products<Unit>> {
  template <class T, class Arch, class Op>
  using block_memory = pair_gradient_memory<Arch, Op, Unit>;
  template <class T, class Arch>
  using cotangents = pair_cotangents<Arch, Unit>;
  template <class C, class T, class Arch>
  using contraction_vjp = std::conditional_t<contraction::PlainProduct<C>, pair_contraction_vjp<C, Arch, Unit>,
                                             exec_cpu::contraction_vjp<C, T, Arch>>;
};

}  // namespace attune::exec_cpu
