// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   weights of a block -> f_ij w_ij,  f_ij = factor(u_ij, j)
//
// The weight gate of a row, between the masses and the value sum: forward, gradients, tangents and decode. The numbers
// u of a block are in the buffer tile_types::planes::gate: a contraction puts them there, or draw_numbers does.
#pragma once

#include <algorithm>
#include <array>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/contraction/uniform.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/values.hpp>
#include <attune/exec/cpu/row/contract.hpp>
#include <attune/exec/cpu/row/slots.hpp>
#include <attune/exec/weight_gate.hpp>

namespace attune::exec_cpu {

/// Draws the numbers of a block if the weight gate reads random numbers; else nothing.
template <class T, class Arch, class Op>
void draw_numbers([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] T* pairs,
                  [[maybe_unused]] key_block_place const& block) {
  using types = tile_types<T, Arch, Op>;
  if constexpr (attune::detail::draws_numbers<Op>)
    draw_numbers<T, Arch>(pairs + types::planes::gate * types::pair_buffer, tile.op->weight_gate.seed, tile.place(),
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
  constexpr index_t plane = types::pair_buffer, number = types::planes::has_gate ? types::planes::gate * plane : 0;
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

/// Multiplies the weights of a block by the factors of the weight gate, if there is one.
template <class T, class Arch, class Op>
void gate_all_weights([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] T* pairs,
                      [[maybe_unused]] seen_block const& s, [[maybe_unused]] std::uint64_t const* bits) {
  if constexpr (pair_planes<Op>::factors_weights) {
    draw_numbers(tile, pairs, key_block_place{s.first, s.n});
    gate_weights<true>(tile, pairs, s.first, 0, s.full_first, bits);
    gate_weights<false>(tile, pairs, s.first, s.full_first, s.full_last, bits);
    gate_weights<true>(tile, pairs, s.first, s.full_last, s.n, bits);
  }
}

/// The type of the factors of value sums when their reference rises. A weight gate leaves sums that underflow there.
/// Without one they are rare.
template <class Op, class Batch>
using scale_of_sums = std::conditional_t<Op::has_weight_gate, attune::detail::row_scale<Batch>, Batch>;

/// A weight after the gate. u: the gate's number.
template <class Op, class Bound, class Batch>
ATTUNE_INLINE Batch gated_weight([[maybe_unused]] Bound const& bound, Batch const& w, [[maybe_unused]] Batch const& u,
                                 [[maybe_unused]] key<Batch> const& k) {
  if constexpr (Op::has_weight_gate)
    return attune::detail::scaled_weight(
        w, attune::detail::weight_factor<typename Op::weight_gate_policy>(bound.weight_gate, u, k));
  else
    return w;
}

/// <do, v> times the factor.
template <class Op, class Bound, class Batch>
ATTUNE_INLINE Batch gated_gain([[maybe_unused]] Bound const& bound, Batch const& g, [[maybe_unused]] Batch const& u,
                               [[maybe_unused]] key<Batch> const& k) {
  if constexpr (Op::has_weight_gate)
    return attune::detail::weight_factor<typename Op::weight_gate_policy>(bound.weight_gate, u, k) * g;
  else
    return g;
}

/// The weight gate of rows with a candidate set, whose weights are known after the last block: keeps its numbers until
/// then. Does nothing if the operator has none.
template <class T, class Arch, class Op>
class candidate_gate {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  static constexpr int queries = types::queries;
  static constexpr bool keeps = attune::detail::contracts_weights<Op>;

 public:
  struct memory {
    T* numbers;
    memory(arena<T>& from, problem_shape const& p) : numbers(from.take(keeps ? queries * p.keys : 0)) {}
  };
  explicit candidate_gate(memory const& m) : numbers_(m.numbers) {}
  /// Keeps the numbers of a block of n keys; `row` is the row of its first key in the columns.
  void keep(T const* pairs, index_t n, index_t row) {
    if constexpr (keeps)
      std::copy_n(pairs + types::planes::gate * types::pair_buffer, n * queries, numbers_ + row * queries);
  }
  /// Multiplies the weights of a block by their factors, in place, for the rows that have the key in their support.
  void apply(tile_rows<T, Arch, Op> const& tile, T* weights, index_t row, key_block_place const& keys,
             std::uint64_t const* bits, T* pairs) const {
    if constexpr (Op::has_weight_gate) gate(tile, weights + row * queries, row, keys, bits, pairs);
  }
  /// The factor of key j for lane l.
  T factor([[maybe_unused]] tile_rows<T, Arch, Op> const& tile, [[maybe_unused]] index_t l, [[maybe_unused]] index_t j,
           [[maybe_unused]] index_t row) const {
    if constexpr (Op::has_weight_gate) {
      index_t const i = tile.query(l);
      T x[types::pairs + 1];
      if constexpr (keeps) x[types::logit_pairs] = numbers_[row * queries + l];
      auto const f = tile.op->bind(attune::detail::scalar_row<T>(*tile.p, tile.op->mask, tile.b, tile.h, i));
      return attune::detail::factor_of_pair(*tile.op, f, x, *tile.p, tile.b, tile.h, i, j);
    } else {
      return T(1);
    }
  }

 private:
  ATTUNE_NOINLINE void gate(tile_rows<T, Arch, Op> const& tile, T* weights, [[maybe_unused]] index_t row,
                            key_block_place const& keys, std::uint64_t const* bits, T* pairs) const {
    draw_numbers(tile, pairs, keys);
    T const* numbers = pairs + types::planes::gate * types::pair_buffer;
    if constexpr (keeps) numbers = numbers_ + row * queries;
    typename tile_rows<T, Arch, Op>::bound_lanes const f = tile.bound;
    for (index_t j = 0; j < keys.n; ++j) {
      if (bits[j] == 0) continue;
      for (int v = 0; v < types::vectors; ++v) {
        index_t const lane = j * queries + v * types::lanes;
        T* const at = weights + lane;
        batch const w = gated_weight<Op>(f.at[v], batch::load_aligned(at), gate_number<Op, batch>(numbers + lane),
                                         key<batch>{batch(T(keys.first + j))});
        simd::select(lanes_of<T, Arch>(bits[j] >> (v * types::lanes)), w, batch(T(0))).store_aligned(at);
      }
    }
  }
  T* numbers_;
};

// Backward:  out = sum_j f_j w_j v_j, g_j = <do, v_j>:   h_j = f_j g_j for the row,   df_j = w_j g_j for the gate

/// A weight gate in the backward pass: its factors with derivatives, and the gradients of its parameters. The rest of
/// the row sees h_j in place of <do, v_j>. Without a weight gate every factor is 1.
template <class T, class Arch, class Op, bool Present = Op::has_weight_gate>
struct weight_gate_gradients {
  using batch = typename tiling<T, Arch>::batch;
  struct nothing {};
  template <chain_rule Rule, class Tile>
  static nothing bind(Tile const&, int) {
    return {};
  }
  nothing sums(int) const { return {}; }
  void set_sums(int, nothing) {}
  template <chain_rule Rule>
  ATTUNE_INLINE static nothing factor(nothing, T const*, index_t) {
    return {};
  }
  ATTUNE_INLINE static batch gain(nothing, batch const& g) { return g; }
  ATTUNE_INLINE static batch by_logit(batch const& x) { return x; }
  template <chain_rule Rule, class Seen>
  ATTUNE_INLINE static batch weigh(nothing, nothing, batch const& w, batch const&, Seen const&, batch*) {
    return w;
  }
  ATTUNE_INLINE static batch total(nothing, batch const& x) { return x; }
  template <class... Any>
  void flush(Any const&...) const {}
};

template <class T, class Arch, class Op>
class weight_gate_gradients<T, Arch, Op, true> {
  using batch = typename tiling<T, Arch>::batch;
  using counts = slots_of<Op>;
  using gate = typename Op::weight_gate_policy;
  static constexpr bool contracts = attune::detail::contracts_weights<Op>;
  static constexpr int vectors = tiling<T, Arch>::vectors, parameters = counts::weight_gate;
  /// Directions of a factor: the contraction, if the gate reads one, then the parameters.
  template <chain_rule Rule>
  using factor_dual = dual<batch, (std::max)(1, int(contracts) + parameters), Rule>;
  using parameter_sums = std::array<batch, std::size_t((std::max)(1, parameters))>;

 public:
  weight_gate_gradients() {
    for (int v = 0; v < vectors; ++v) by_[v].fill(batch(T(0)));
  }

  /// The gate of batch v of the rows. Tile: gradient_tile.
  template <chain_rule Rule, class Tile>
  static auto bind(Tile const& t, int v) {
    return t.rows.op->weight_gate.bind(
        moving_row<factor_dual<Rule>>(t.facts[v], counts::of_weight_gate, parameters, int(contracts)));
  }
  parameter_sums const& sums(int v) const { return by_[v]; }
  void set_sums(int v, parameter_sums const& x) { by_[v] = x; }

  /// The factors of key j. `number`: where the gate's numbers are.
  template <chain_rule Rule, class Bound>
  ATTUNE_INLINE static factor_dual<Rule> factor(Bound const& bound, T const* number, index_t j) {
    using D = factor_dual<Rule>;
    D u(gate_number<Op, batch>(number));
    if constexpr (contracts) u.tangent[0] = batch(T(1));
    return attune::detail::weight_factor<gate>(bound, u, key<D>{D(batch(T(j)))});
  }
  /// h_j
  template <class Factor>
  ATTUNE_INLINE static batch gain(Factor const& f, batch const& g) {
    return f.value * g;
  }
  ATTUNE_INLINE static batch by_logit(batch const& x) { return attune::detail::zero_if_subnormal<15>(x); }
  /// The weight w after the gate. Adds the gradients of the parameters to `to` and writes the gradient by the
  /// contraction, if there is one. seen(x): 0 where the key is not seen.
  template <chain_rule Rule, class Factor, class Seen>
  ATTUNE_INLINE static batch weigh(parameter_sums& to, Factor const& f, batch const& w, batch const& g,
                                   Seen const& seen, [[maybe_unused]] batch* by_contraction) {
    batch const by_factor = seen(batch(w * g));
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s) {
      batch const slope = f.tangent[int(contracts) + s];
      to[std::size_t(s)] =
          to[std::size_t(s)] + attune::detail::chained<Rule>(attune::detail::zero_if_tiny(by_factor, slope), slope);
    }
    if constexpr (contracts) *by_contraction = attune::detail::chained<Rule>(by_factor, f.tangent[0]);
    return attune::detail::scaled_weight(w, f.value);
  }
  /// x + the sums: NaN if one is.
  ATTUNE_INLINE static batch total(parameter_sums const& sums, batch x) {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s) x = x + sums[std::size_t(s)];
    return x;
  }

  /// Passes the gradients of the parameters to the call.
  template <class Tile>
  void flush(Tile const& t, index_t first_of_task, gradient_sinks<T>& to) const {
    ATTUNE_UNROLL_FEW
    for (int s = 0; s < parameters; ++s)
      t.add_parameter(counts::of_weight_gate + s, first_of_task, to, [&](int v) { return by_[v][std::size_t(s)]; });
  }

 private:
  parameter_sums by_[std::size_t(vectors)];
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
ATTUNE_POINTWISE void gate_moving_weights(tile_rows<T, Arch, Op> const& tile, Moving const& moving, T* pairs,
                                          T* tangents, seen_block const& s, std::uint64_t const* bits)
  requires pair_planes<Op>::factors_weights
{
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using D = dual<batch, 1>;
  constexpr index_t number = types::planes::has_gate ? types::planes::gate * types::pair_buffer : 0;
  draw_numbers(tile, pairs, key_block_place{s.first, s.n});
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

/// The value sum of a uniform share.
template <class T, class Arch, class Op>
using share_sums = std::conditional_t<pair_planes<Op>::factored_share, factor_sums<T, Arch>, plain_sums<T, Arch>>;

/// In decode: multiplies the weights of a block by their factors, in place. With a uniform share, the factors replace
/// the gate's numbers. Pairs that are not seen keep the weight 0. `plane`: elements of a buffer, [row][key]. seen[r]: a
/// bit for each key that row r sees.
template <class T, class Arch, class Op, class Bound>
ATTUNE_NOINLINE void gate_decode_weights(Op const& op, Bound const* bound, T* pairs, index_t plane,
                                         std::uint64_t const* seen, decode_place const& at, key_block_place const& keys)
  requires pair_planes<Op>::factors_weights
{
  using tile = decode_tiling<T, Arch>;
  using batch = typename tile::batch;
  using planes = pair_planes<Op>;
  alignas(64) T index[tile::lanes];
  for (int l = 0; l < tile::lanes; ++l) index[l] = T(l);
  batch const lane = batch::load_aligned(index), zero(T(0));
  index_t const number = planes::has_gate ? planes::gate * plane : 0;
  if constexpr (attune::detail::draws_numbers<Op>)
    draw_decode_numbers<T, Arch>(pairs + number, op.weight_gate.seed, at, keys);
  for (index_t r = 0; r < at.rows; ++r) {
    auto const gate = bound[r].weight_gate;
    for (index_t j = 0; seen[r] != 0 && j < tile::whole(keys.n); j += tile::lanes) {
      T* const here = pairs + r * tile::block + j;
      auto const mine = lanes_of<T, Arch>(seen[r] >> j);
      batch const factor = attune::detail::weight_factor<typename Op::weight_gate_policy>(
          gate, gate_number<Op, batch>(here + number), key<batch>{batch(T(keys.first + j)) + lane});
      simd::select(mine, attune::detail::scaled_weight(batch::load_aligned(here), factor), zero).store_aligned(here);
      if constexpr (planes::adjusted)
        simd::select(mine, batch(batch::load_aligned(here + plane) * factor), zero).store_aligned(here + plane);
      if constexpr (planes::factored_share) simd::select(mine, factor, zero).store_aligned(here + number);
    }
  }
}
}  // namespace attune::exec_cpu
