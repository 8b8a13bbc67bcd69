// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   weights of a block -> f_ij w_ij,  f_ij = factor(u_ij, j)
//
// The weight gate of a row, between the masses and the value sum: forward, gradients, tangents and decode. The numbers
// u of a block are in the buffer tile_types::gate_plane: a contraction puts them there, or draw_numbers does.
#pragma once

#include <algorithm>
#include <array>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/random.hpp>
#include <attune/exec/cpu/row/contract.hpp>
#include <attune/exec/cpu/row/slots.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cpu {

/// to[key][query] = the random numbers of the keys of a block and the queries of a tile.
template <class T, class Arch>
ATTUNE_NOINLINE void draw_numbers(T* to, std::uint64_t seed, tile_place const& at, key_block_place const& block) {
  using tile = tiling<T, Arch>;
  using numbers = random_numbers<T, Arch>;
  using counters = typename numbers::counters;
  using attune::detail::random_place;
  numbers const random(seed, at.b, at.h);
  index_t const last = block.first + block.n;
  for (int v = 0; v < tile::vectors; ++v) {
    counters const positions = counters::of([&](index_t l) {
      return (std::min)(at.first + v * tile::lanes + l, at.p->whole_queries() - 1) + at.p->offset_of(at.b);
    });
    for (index_t g = random_place::group(block.first); g * random_place::keys < last; ++g) {
      typename tile::batch u[random_place::keys];
      random.draw(counters(std::uint32_t(g)), positions, u);
      index_t const j = g * random_place::keys - block.first;
      for (index_t r = 0; r < random_place::keys; ++r)
        if (j + r >= 0 && j + r < block.n) u[r].store_aligned(to + (j + r) * tile::queries + v * tile::lanes);
    }
  }
}

/// The same for the tile of an operator whose weight gate reads random numbers; else nothing.
template <class T, class Arch, class Op>
void draw_numbers([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] T* pairs,
                  [[maybe_unused]] key_block_place const& block) {
  using types = tile_types<T, Arch, Op>;
  if constexpr (attune::detail::draws_numbers<Op>)
    draw_numbers<T, Arch>(pairs + types::gate_plane * types::pair_buffer, tile.op->weight_gate.seed, tile.place(),
                          block);
}

/// The number u at `at` of the gate's buffer, if the gate reads one.
template <class Op, class Batch, class T>
ATTUNE_INLINE Batch gate_number([[maybe_unused]] T const* at) {
  if constexpr (attune::detail::reads_numbers<Op>)
    return Batch::load_aligned(at);
  else
    return Batch(T(0));
}

/// Multiplies the weights of the keys [from, to) by their factors, in place. Masked: pairs that are not seen keep the
/// weight 0, whatever their number is. With a uniform share, the factors replace the numbers.
template <bool Masked, class T, class Arch, class Op>
ATTUNE_POINTWISE void gate_weights(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t first, index_t from,
                                   index_t to, std::uint64_t const* bits) {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using gate = typename Op::weight_gate_policy;
  constexpr int vectors = types::vectors, lanes = types::lanes;
  constexpr index_t plane = types::pair_buffer, number = types::has_gate_plane ? types::gate_plane * plane : 0;
  if (from >= to) return;
  typename tile_rows<T, Arch, Op>::bound_lanes const f = tile.bound;
  batch const zero(T(0));
  for (index_t j = from; j < to; ++j) {
    key<batch> const k{batch(T(first + j))};
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      T* const at = pairs + j * types::queries + v * lanes;
      auto const seen = [&](batch const& x) {
        if constexpr (Masked)
          return batch(simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), x, zero));
        else
          return x;
      };
      batch const factor =
          attune::detail::weight_factor<gate>(f.at[v].weight_gate, gate_number<Op, batch>(at + number), k);
      seen(attune::detail::scaled_weight(batch::load_aligned(at), factor)).store_aligned(at);
      if constexpr (types::adjusted) seen(batch::load_aligned(at + plane) * factor).store_aligned(at + plane);
      if constexpr (types::traits.uniform_share) seen(factor).store_aligned(at + number);
    }
  }
}

/// Multiplies the weights of a block by the factors of the weight gate.
template <class T, class Arch, class Op>
void gate_all_weights(tile_rows<T, Arch, Op> const& tile, T* pairs, seen_block const& s, std::uint64_t const* bits) {
  draw_numbers(tile, pairs, key_block_place{s.first, s.n});
  gate_weights<true>(tile, pairs, s.first, 0, s.full_first, bits);
  gate_weights<false>(tile, pairs, s.first, s.full_first, s.full_last, bits);
  gate_weights<true>(tile, pairs, s.first, s.full_last, s.n, bits);
}

// Backward:  out = sum_j f_j w_j v_j, g_j = <do, v_j>:   h_j = f_j g_j for the row,   df_j = w_j g_j for the gate

/// The factor of a weight gate with its derivatives, and the gradients of its parameters. The rest of the row sees h_j
/// in place of <do, v_j>. Nothing, for operators without a weight gate.
template <class T, class Arch, class Op, bool Present = Op::has_weight_gate>
struct weight_gate_gradients {};

template <class T, class Arch, class Op>
class weight_gate_gradients<T, Arch, Op, true> {
  using batch = typename tiling<T, Arch>::batch;
  using counts = slots_of<Op>;
  using gate = typename Op::weight_gate_policy;
  static constexpr bool contracts = attune::detail::contracts_weights<Op>;
  static constexpr int vectors = tiling<T, Arch>::vectors, first_slot = counts::logit + counts::normalizer;

 public:
  static constexpr int parameters = counts::weight_gate;
  /// Directions of a factor: the contraction, if the gate reads one, then the parameters.
  template <chain_rule Rule>
  using factor_dual = dual<batch, (std::max)(1, int(contracts) + parameters), Rule>;
  using sums = std::array<batch, std::size_t((std::max)(1, parameters))>;

  weight_gate_gradients() {
    for (int v = 0; v < vectors; ++v) by[v].fill(batch(T(0)));
  }

  /// The gate of batch v of the rows. Tile: gradient_tile.
  template <chain_rule Rule, class Tile>
  static auto bind(Tile const& t, int v) {
    return t.rows.op->weight_gate.bind(
        moving_row<factor_dual<Rule>>(t.facts[v], first_slot, parameters, int(contracts)));
  }
  /// The factors of key j. u: the gate's number.
  template <chain_rule Rule, class Bound>
  ATTUNE_INLINE static factor_dual<Rule> factor(Bound const& bound, batch const& u, index_t j) {
    using D = factor_dual<Rule>;
    D number(u);
    if constexpr (contracts) number.tangent[0] = batch(T(1));
    return attune::detail::weight_factor<gate>(bound, number, key<D>{D(batch(T(j)))});
  }
  /// Adds the gradients of the parameters to `to`. by_factor: w_j g_j, 0 where the key is not seen.
  template <chain_rule Rule>
  ATTUNE_INLINE static void add(sums& to, factor_dual<Rule> const& f, batch const& by_factor) {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s) {
      batch const slope = f.tangent[int(contracts) + s];
      to[std::size_t(s)] =
          to[std::size_t(s)] + attune::detail::chained<Rule>(attune::detail::zero_if_tiny(by_factor, slope), slope);
    }
  }

  /// Passes the gradients of the parameters to the call.
  template <class Tile>
  void flush(Tile const& t, index_t first_of_task, gradient_sinks<T>& to) const {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s)
      t.add_parameter(first_slot + s, first_of_task, to, [&](int v) { return by[v][std::size_t(s)]; });
  }

  sums by[std::size_t(vectors)];
};

// Tangents:  (w, dw), (u, du) -> f w,  f dw + w df

/// sum_j f_j v_j of the queries of a tile, [feature][query]: the value sum of a uniform share whose keys have factors.
template <class T, class Arch>
struct factor_sums {
  T* own = nullptr;
  static index_t size(index_t width) { return tiling<T, Arch>::queries * width; }
  factor_sums() = default;
  /// Sets the sums at `memory` to 0.
  factor_sums(T* memory, index_t width) : own(memory) { std::fill_n(memory, size(width), T(0)); }
  T operator()(index_t query, index_t d) const { return own[d * tiling<T, Arch>::queries + query]; }
};

/// Multiplies the weights of a block by their factors, both with their tangents, in place. `moving`: the operator,
/// bound to each batch of rows as duals. With a uniform share, the factors replace the numbers.
template <class T, class Arch, class Op, class Moving>
ATTUNE_POINTWISE void gate_moving_weights([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, Moving const& moving,
                                          T* pairs, T* tangents, seen_block const& s, std::uint64_t const* bits) {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using D = dual<batch, 1>;
  constexpr index_t number = types::has_gate_plane ? types::gate_plane * types::pair_buffer : 0;
  for (int v = 0; v < types::vectors; ++v) {
    auto const gate = moving.at[v].weight_gate;
    for (index_t j = 0; j < s.n; ++j) {
      index_t const at = j * types::queries + v * types::lanes;
      bool const by_all = j >= s.full_first && j < s.full_last;
      auto const seen = lanes_of<T, Arch>(by_all ? ~std::uint64_t(0) : bits[j] >> (v * types::lanes));
      auto const store = [&](D const& x, index_t to) {
        math::select(seen, x.value, batch(T(0))).store_aligned(pairs + to);
        math::select(seen, x.tangent[0], batch(T(0))).store_aligned(tangents + to);
      };
      D u(gate_number<Op, batch>(pairs + number + at)), w(batch::load_aligned(pairs + at));
      if constexpr (attune::detail::contracts_weights<Op>) u.tangent[0] = batch::load_aligned(tangents + number + at);
      w.tangent[0] = batch::load_aligned(tangents + at);
      D const factor =
          attune::detail::weight_factor<typename Op::weight_gate_policy>(gate, u, key<D>{D(batch(T(s.first + j)))});
      store(w * factor, at);
      if constexpr (types::traits.uniform_share) store(factor, number + at);
    }
  }
}

// Decode: lanes are groups of four neighboring keys.

/// Which plane of pairs a weight gate's numbers have in the decode path, and how many planes there are. As in
/// tile_types.
template <class Op>
struct decode_planes {
  static constexpr bool adjusted = Op::normalizer_is.family == row_family::range_weighted;
  static constexpr int gate = (std::max)(1 + int(adjusted), Op::logit_contractions);
  static constexpr bool has_gate =
      attune::detail::reads_numbers<Op> || (Op::has_weight_gate && Op::normalizer_is.uniform_share);
  static constexpr int count = has_gate ? gate + 1 : (std::max)(1 + int(adjusted), Op::contractions::size);
};

/// Draws the numbers of a block. Padded with 0 to whole batches.
template <class T, class Arch>
ATTUNE_NOINLINE void draw_decode_numbers(T* to, std::uint64_t seed, decode_place const& at,
                                         key_block_place const& keys) {
  using tile = decode_tiling<T, Arch>;
  using numbers = random_numbers<T, Arch>;
  using counters = typename numbers::counters;
  using attune::detail::random_place;
  index_t const end = keys.first + keys.n;
  for (index_t r = 0; r < at.rows; ++r, to += tile::block) {
    numbers const random(seed, at.b, at.head_of(r));
    counters const position(std::uint32_t(at.query_of(r) + at.p->offset_of(at.b)));
    std::fill(to + keys.n, to + tile::whole(keys.n), T(0));
    for (index_t g = random_place::group(keys.first); g * random_place::keys < end; g += tile::lanes) {
      typename tile::batch u[random_place::keys];
      random.draw(counters::of([&](index_t l) { return g + l; }), position, u);
      alignas(64) T lane[random_place::keys][tile::lanes];
      for (int w = 0; w < int(random_place::keys); ++w) u[w].store_aligned(lane[w]);
      index_t const first = (std::max)(g * random_place::keys, keys.first),
                    last = (std::min)((g + tile::lanes) * random_place::keys, end);
      for (index_t j = first; j < last; ++j)
        to[j - keys.first] = lane[random_place::word(j)][random_place::group(j) - g];
    }
  }
}

}  // namespace attune::exec_cpu
