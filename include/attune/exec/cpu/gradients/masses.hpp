// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for each block of keys:  contractions, h = <do, v>  ->  d logit, weights
//
// The gradients of every normalizer with an O(1) state. Everything is recomputed block by block from the row states
// that a forward pass saved. The row rules are in exec/row_slopes.hpp.
#pragma once

#include <attune/exec/cpu/gradients/tile.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/row_slopes.hpp>

namespace attune::exec_cpu {

/// Products: how the tile multiplies.
template <class T, class Arch, class Op, class Products = full_products>
class mass_gradients {
  using types = tile_types<T, Arch, Op>;
  using base = gradient_tile<T, Arch, Op, Products>;

 public:
  using value_type = T;
  using batch = typename types::batch;
  using inputs_type = typename types::inputs_type;
  using normalizer = typename types::normalizer;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries, pairs = types::pairs;
  static constexpr int logit_pairs = types::logit_pairs;
  static constexpr index_t block = types::block;
  static constexpr normalizer_traits traits = types::traits;
  static constexpr bool adjusted = types::adjusted;
  using call = typename base::call_type;
  static constexpr index_t tiles_of_task = types::shape_of::tiles;
  static constexpr bool prepares = gradient_pass<T, Arch, Op>::prepares;

  struct tile_memory : base::tile_memory, gradient_pass<T, Arch, Op>::tile_memory {
    tile_memory(arena<T>& from, problem_shape const& p)
        : base::tile_memory(from, p), gradient_pass<T, Arch, Op>::tile_memory(from, p) {}
  };
  struct block_memory : base::block_memory, gradient_pass<T, Arch, Op>::block_memory {
    T* gain;   ///< h, then weights
    T* spare;  ///< copy of the first contraction, where logits overwrite it
    T* saved;  ///< rows of the saved state
    block_memory(arena<T>& from, problem_shape const& p)
        : base::block_memory(from, p), gradient_pass<T, Arch, Op>::block_memory(from),
          gain(from.take(types::pair_buffer)), spare(from.take(adjusted ? types::pair_buffer : 0)),
          saved(from.take(queries * p.value_width)) {}
  };

  ATTUNE_NOINLINE mass_gradients(call const& c, index_t b, index_t h, index_t first_query, tile_memory const& memory,
                                 block_memory const& shared)
      : mass_gradients(std::make_index_sequence<std::size_t(vectors)>{}, c, b, h, first_query, memory, shared) {
    batch value_sum[vectors], second_sum[vectors];
    tile_.inner(c.saved.acc, shared.saved, value_sum);
    if constexpr (states_of<T, Op>::has_second)
      tile_.inner(c.saved.second, shared.saved, second_sum);
    else
      std::fill_n(second_sum, vectors, batch(T(0)));
    for (int v = 0; v < vectors; ++v) {
      reference_[v] = saved(c.saved.reference, v);
      batch const earned = saved(c.saved.earned, v);
      batch d_lse(T(0));
      if constexpr (Op::has_lse) d_lse = numbers(c.d.lse, v);
      if constexpr (adjusted)
        adjusted_row(v, earned, value_sum[v], second_sum[v], d_lse);
      else
        mass_row(v, earned, {value_sum[v], second_sum[v], ground_gain(v), d_lse});
      if (!c.part.own_terms) tile_.by_normalizer[v].fill(batch(T(0)));
    }
    pass_.start(tile_.rows, c.part);
    if constexpr (adjusted) drop_spent(tile_.rows, c.part.ends, through_lowest_, through_highest_);
  }

  key_interval hull() const { return tile_.rows.sees.hull; }

  /// Streams the keys [first, last) of one block in the order of the sum, before `accumulate` takes
  /// the blocks in the opposite order.
  ATTUNE_NOINLINE void prepare(index_t first, index_t last, block_memory const& memory)
    requires prepares
  {
    std::uint64_t bits[types::block];
    auto const s = tile_.rows.seen(first, last, bits);
    if (s.n != 0) pass_.prepare(tile_.rows, tile_.call->in, s, bits, memory);
  }

  /// Streams the keys [first, last) of one block through the rows.
  ATTUNE_NOINLINE void accumulate(index_t first, index_t last, block_memory const& memory, gradient_sinks<T>& to) {
    std::uint64_t bits[types::block];
    auto s = tile_.rows.seen(first, last, bits);
    if (s.n == 0) return;
    inputs_type const& in = tile_.call->in;
    T *const pairs_at = memory.pairs, *const gain = memory.gain, *const spare = memory.spare;
    pass_.numbers(tile_, in, s, bits, memory);
    tile_.gains(gain, s, memory, first);
    if constexpr (adjusted) {  // the logits of the forward pass identify the extreme ones
      if constexpr (logit_pairs > 0) std::copy_n(pairs_at, s.n * queries, spare);
      logit_extremes<T, Arch> unused;
      all_logits(tile_.rows, pairs_at, s, bits, unused);
    }
    draw_numbers(tile_.rows, pairs_at, key_block_place{s.first, s.n});
    tile_.drop_idle_lanes(s, bits);
    pair_rows const rows{pairs_at, gain, spare, s.first, bits};
    for (int v = 0; v < vectors; ++v) {
      pull_pairs<true>(rows, v, 0, s.full_first);
      index_t const plain = pull_pairs<false>(rows, v, s.full_first, s.full_last);
      pull_pairs<true>({pairs_at, gain, spare, s.first, nullptr}, v, plain, s.full_last);
      pull_pairs<true>(rows, v, s.full_last, s.n);
    }
    pass_.pull(tile_, s.n, memory);
    tile_.pull_block(
        {s.first, s.n}, [&](int n) -> T const* { return contraction_at(pairs_at, spare, n); }, gain, memory, to);
  }

  ATTUNE_NOINLINE void finish(index_t first_of_task, block_memory const&, gradient_sinks<T>& to) {
    if (prepares && !tile_.call->part.gives.empty()) return pass_.give(tile_.rows, tile_.call->part);
    tile_.flush(first_of_task, to);
    gate_.flush(tile_, first_of_task, to);
    if constexpr (adjusted) keep_rest(tile_.rows, tile_.call->part.ends, through_lowest_, through_highest_);
    if (!tile_.call->part.own_terms) return;
    alignas(64) T factor[queries], share[queries], ground[queries];
    for (int v = 0; v < vectors; ++v) {
      factor_of_row(v).store_aligned(factor + v * lanes);
      share_of_row(v).store_aligned(share + v * lanes);
      ground_weight_[v].store_aligned(ground + v * lanes);
    }
    if constexpr (Op::uses(field::v0)) {
      gradient_array<double>& sum = to.sums->ground_value;
      for (index_t l = 0; l < tile_.rows.count; ++l)
        for (index_t d = 0; d < tile_.rows.p->value_width; ++d)
          sum(0, 0, tile_.rows.first_query + l - first_of_task, d) += double(ground[l] * tile_.d_out[d * queries + l]);
    }
    if constexpr (Op::has_output_gate)
      tile_.pull_output_gate(first_of_task, to, [&](index_t l, index_t d) {
        auto const n = std::size_t(tile_.call->saved.at(tile_.rows.b, tile_.rows.h, tile_.rows.first_query + l) *
                                       tile_.rows.p->value_width +
                                   d);
        T out = tile_.call->saved.acc[n] * factor[l];
        if constexpr (states_of<T, Op>::has_second) out += tile_.call->saved.second[n] * share[l];
        if constexpr (Op::uses(field::v0)) out += ground[l] * ground_value(l, d);
        return out;
      });
  }

 private:
  using counts = typename base::counts;
  using gate_type = weight_gate_gradients<T, Arch, Op>;
  template <std::size_t... V>
  mass_gradients(std::index_sequence<V...>, call const& c, index_t b, index_t h, index_t first_query,
                 tile_memory const& memory, block_memory const& shared)
      : tile_(c, b, h, first_query, memory, shared), plain_{{tile_.template bind_logit<chain_rule::plain>(int(V))...}},
        pass_(memory) {}

  // Directions of a mass: the logit, the row constant and the normalizer's parameters. Directions of a row: E and G (or
  // the extreme logits), the row constant and the normalizer's parameters.
  template <chain_rule Rule>
  using mass_dual = dual<batch, 1 + base::shifts + counts::normalizer, Rule>;
  using row_dual = dual<batch, 2 + base::shifts + counts::normalizer>;

  static T* contraction_at(T* x, [[maybe_unused]] T* spare, int n) {
    if constexpr (adjusted && logit_pairs > 0)
      if (n == 0) return spare;
    return x + types::planes::of(n) * types::pair_buffer;
  }

  /// One number per row; 0 if the tensor is absent.
  batch numbers(tensor<T const> const& x, int v) const {
    alignas(64) T lane[lanes] = {};
    for (index_t l = 0; l < lanes && !x.absent(); ++l)
      lane[l] = x(tile_.rows.b, tile_.rows.h, tile_.rows.query(v * lanes + l), 0);
    return batch::load_aligned(lane);
  }
  /// The saved numbers of the rows.
  batch saved(std::span<T const> x, int v) const { return tile_.rows.saved_lanes(tile_.call->saved, x, v); }
  T ground_value(index_t l, index_t d) const {
    return attune::detail::ground_value_row(tile_.call->in.v0, tile_.rows.b, tile_.rows.h,
                                            tile_.rows.query(l))[d * tile_.call->in.v0.steps().feature];
  }
  /// h_0 = <do, v0> + dw0
  batch ground_gain([[maybe_unused]] int v) const {
    batch gain(T(0));
    if constexpr (Op::has_ground_weight) gain = numbers(tile_.call->d.ground_weight, v);
    if constexpr (Op::uses(field::v0))
      for (index_t d = 0; d < tile_.rows.p->value_width; ++d) {
        alignas(64) T lane[lanes];
        for (index_t l = 0; l < lanes; ++l) lane[l] = ground_value(v * lanes + l, d);
        gain = gain + batch::load_aligned(tile_.d_out + d * queries + v * lanes) * batch::load_aligned(lane);
      }
    return gain;
  }

  void mass_row(int v, batch const& earned, attune::detail::row_gains<batch> const& gains) {
    auto const r = tile_.template normalizer_row<row_dual>(v, 2);
    auto const s = attune::detail::slopes_of_masses<Op>(tile_.normalizer_of(r), reference_[v], earned,
                                                        saved(tile_.call->saved.ground, v),
                                                        row_dual(tile_.rows.visible[v]), r.logit_shift, gains);
    pair_[v] = s.pair();
    ground_weight_[v] = s.done.ground_weight.value;
    for (int k = 0; k < base::shifts + counts::normalizer; ++k) tile_.by_normalizer[v][std::size_t(k)] = s.by[2 + k];
  }
  void adjusted_row(int v, batch const& earned, batch const& value_sum, batch const& second_sum, batch const& d_lse) {
    lowest_[v] = saved(tile_.call->saved.lowest, v);
    auto const s =
        attune::detail::slopes_of_adjusted<traits.detached_ends, 2 + base::shifts + counts::normalizer, base::shifts>(
            tile_.normalizer_of(tile_.template normalizer_row<row_dual>(v, 2)), reference_[v], earned, lowest_[v],
            value_sum, second_sum, d_lse);
    slopes_[v] = s.pair;
    ground_weight_[v] = batch(T(0));
    through_lowest_[v] = s.by[0];
    through_highest_[v] = s.by[1];
    for (int k = 0; k < base::shifts + counts::normalizer; ++k) tile_.by_normalizer[v][std::size_t(k)] = s.by[2 + k];
  }

  template <chain_rule Rule>
  auto const& moving(int v) const {
    if constexpr (Rule == chain_rule::plain)
      return plain_.at[v];
    else
      return tile_.moving.at[v];
  }

  /// Where the pairs of a block are, and which queries see them; without bits, all do.
  struct pair_rows {
    T *contractions, *gain, *spare;
    index_t first;
    std::uint64_t const* bits;
  };

  /// Turns contractions and h of the keys [from, to), for batch v of the queries, into gradients by the contractions,
  /// and into weights, in place. Returns where it stopped. Unguarded, the chain rule is plain products, which is right
  /// while everything is finite. It then stops at the first key that gives NaN, and the guarded rule takes over.
  template <bool Guarded>
  ATTUNE_POINTWISE index_t pull_pairs(pair_rows const& rows, int v, index_t from, index_t to) {
    constexpr chain_rule rule = Guarded ? chain_rule::guarded : chain_rule::plain;
    using logit_type = typename base::template logit_dual<rule>;
    using mass_type = mass_dual<rule>;
    auto const chained = [](batch const& x, batch const& y) { return attune::detail::chained<rule>(x, y); };
    if (from >= to) return from;
    batch const zero(T(0));
    auto const f = moving<rule>(v);
    auto const n = tile_.normalizer_of(tile_.template normalizer_row<mass_type>(v, 1));
    auto by_parameter = tile_.by_logit_parameter[v];
    auto by_normalizer = tile_.by_normalizer[v];
    auto by_gate = gate_.sums(v);
    auto const gate = gate_type::template bind<rule>(tile_, v);
    // Local copies, so the compiler knows that stores of weights do not change them.
    auto const pair = pair_[v];
    batch const reference = reference_[v];
    batch through_lowest = through_lowest_[v], through_highest = through_highest_[v];
    T *const x = rows.contractions, *const spare = rows.spare, *const gain = rows.gain;
    index_t j = from;
    for (; j < to; ++j) {
      index_t const at = j * queries + v * lanes;
      auto const seen = [&](batch const& y) {
        if constexpr (Guarded)
          return math::select(lanes_of<T, Arch>(rows.bits == nullptr ? ~std::uint64_t(0) : rows.bits[j] >> (v * lanes)),
                              y, zero);
        else
          return y;
      };
      logit_type moved[logit_pairs + 1];
      ATTUNE_UNROLL_FEW
      for (int c = 0; c < logit_pairs; ++c)
        moved[c] = logit_type::variable(batch::load_aligned(contraction_at(x, spare, c) + at), c);
      logit_type const a = f.logit(moved, key<logit_type>{logit_type(batch(T(rows.first + j)))});
      batch const g = batch::load_aligned(gain + at);  // <do, v>
      auto const factor =
          gate_type::template factor<rule>(gate, x + at + types::planes::gate * types::pair_buffer, rows.first + j);
      batch const h = gate_type::gain(factor, g);
      batch by_logit, weight;
      auto next_by_normalizer = by_normalizer;
      [[maybe_unused]] batch next_lowest, next_highest;
      if constexpr (adjusted) {
        batch const logit = batch::load_aligned(x + at);
        auto const pulled = slopes_[v].pull(logit, reference, h);
        weight = pulled.weight;
        // The gradients through the extreme logits are added at the first key that has them.
        batch const low = seen(math::select(logit == lowest_[v], through_lowest, zero));
        batch const high = seen(math::select(logit == reference_[v], through_highest, zero));
        next_lowest = math::select(low == zero, through_lowest, zero);
        next_highest = math::select(high == zero, through_highest, zero);
        by_logit = (pulled.by_range + (low + high)) + pulled.by_rest;
      } else {
        auto const pulled = pair.template pull<Op, mass_type, 1, base::shifts + counts::normalizer, rule>(
            n, a.value, reference, simd::multiply_add(h, pair.factor, pair.by_earned), [&](int s, batch const& by) {
              next_by_normalizer[std::size_t(s)] = by_normalizer[std::size_t(s)] + seen(by);
            });
        weight = pulled.weight;
        by_logit = pulled.by_logit;
      }
      by_logit = gate_type::by_logit(seen(by_logit));
      batch by_contraction[pairs + 1];
      ATTUNE_UNROLL_FEW
      for (int c = 0; c < logit_pairs; ++c) by_contraction[c] = chained(by_logit, a.tangent[c]);
      auto next_by_parameter = by_parameter;
      ATTUNE_UNROLL_FEW
      for (int s = 0; s < counts::logit; ++s)
        next_by_parameter[std::size_t(s)] =
            by_parameter[std::size_t(s)] + chained(by_logit, a.tangent[logit_pairs + s]);
      auto next_by_gate = by_gate;
      weight =
          seen(gate_type::template weigh<rule>(next_by_gate, factor, weight, g, seen, by_contraction + logit_pairs));
      if constexpr (!Guarded) {
        batch all = weight;
        ATTUNE_UNROLL_FEW
        for (int c = 0; c < pairs; ++c) all = all + by_contraction[c];
        ATTUNE_UNROLL_FEW
        for (int s = 0; s < counts::logit; ++s) all = all + next_by_parameter[std::size_t(s)];
        ATTUNE_UNROLL_FEW
        for (int s = 0; s < base::shifts + counts::normalizer; ++s) all = all + next_by_normalizer[std::size_t(s)];
        all = gate_type::total(next_by_gate, all);
        if (!simd::all(all == all)) break;  // NaN
      }
      weight.store_aligned(gain + at);
      ATTUNE_UNROLL_FEW
      for (int c = 0; c < pairs; ++c) by_contraction[c].store_aligned(contraction_at(x, spare, c) + at);
      tile_.entries.pull(v, moved, rows.first + j, by_logit);
      by_parameter = next_by_parameter;
      by_normalizer = next_by_normalizer;
      by_gate = next_by_gate;
      if constexpr (adjusted) {
        through_lowest = next_lowest;
        through_highest = next_highest;
      }
    }
    tile_.by_logit_parameter[v] = by_parameter;
    tile_.by_normalizer[v] = by_normalizer;
    gate_.set_sums(v, by_gate);
    through_lowest_[v] = through_lowest;
    through_highest_[v] = through_highest;
    return j;
  }

  batch factor_of_row(int v) const {
    if constexpr (adjusted)
      return slopes_[v].value_factor * (reference_[v] - slopes_[v].low);
    else
      return pair_[v].factor;
  }
  batch share_of_row(int v) const {
    if constexpr (adjusted)
      return slopes_[v].value_factor;
    else
      return pair_[v].share;
  }

  base tile_;
  struct {
    typename base::template logit_bound<chain_rule::plain> at[std::size_t(vectors)];
  } plain_;  ///< tile_.moving with the plain chain rule
  batch reference_[std::size_t(vectors)], ground_weight_[std::size_t(vectors)];
  // Family masses.
  attune::detail::mass_pair<batch> pair_[std::size_t(vectors)];
  // Family range_weighted.
  attune::detail::adjusted_pair<batch> slopes_[std::size_t(vectors)];
  [[no_unique_address]] gate_type gate_;
  batch lowest_[std::size_t(vectors)], through_lowest_[std::size_t(vectors)], through_highest_[std::size_t(vectors)];
  [[no_unique_address]] gradient_pass<T, Arch, Op> pass_;
};

}  // namespace attune::exec_cpu
