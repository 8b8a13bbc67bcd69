// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a block of keys -> the logits of a tile of queries, -inf where a query does not see a key
//
// What every family of rows starts from: binding, visibility, contractions and the pointwise part of the pipeline, with
// a batch of rows in every variable. Here and in the tiles built on it policies melt into the executor, and nowhere
// else.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include <attune/core/simd_lift.hpp>
#include <attune/exec/cpu/products/lane_bits.hpp>
#include <attune/exec/cpu/products/values.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>
#include <attune/exec/cpu/tile/visibility.hpp>
#include <attune/operators/row_state.hpp>

namespace attune::exec_cpu {

/// What policies bind to in a batch of rows from query `first` on, `count` keys visible to each; past the end the last
/// query is repeated. Knows no operator, and is compiled once.
template <class T, class Arch>
ATTUNE_NOINLINE row<xsimd::batch<T, Arch>> facts_of_lanes(problem_shape const& p, index_t b, index_t h, index_t first,
                                                          index_t const* count) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = tiling<T, Arch>::lanes;
  alignas(64) T position[lanes], visible[lanes], log_visible[lanes];
  for (index_t l = 0; l < lanes; ++l) {
    position[l] = T((std::min)(first + l, p.queries - 1) + p.offset);
    visible[l] = T(count[l]);
    log_visible[l] = count[l] > 0 ? T(std::log(double(count[l]))) : T(0);
  }
  return attune::detail::row_facts<batch>(p, {b, h, first, p.queries}, batch::load_aligned(position),
                                          batch::load_aligned(visible), batch::load_aligned(log_visible),
                                          batch(T(attune::detail::inverse_sqrt_width(p))));
}

/// One tile of `tiling::queries` rows of one head.
template <class T, class Arch, class Op>
class logit_tile {
 public:
  using value_type = T;
  using shape_of = tiling<T, Arch>;
  using batch = typename shape_of::batch;
  using inputs_type = inputs<Op, tensor<T const>>;
  using normalizer = typename Op::normalizer_policy;
  using contractions = typename Op::contractions;
  static constexpr int vectors = shape_of::vectors, lanes = shape_of::lanes, queries = shape_of::queries;
  static constexpr normalizer_traits traits = normalizer::traits;
  static constexpr index_t block = shape_of::key_block;
  /// Buffers of one block of pairs: one per contraction, at least what the weights need.
  static constexpr int weight_buffers = traits.family == row_family::adjusted ? 2 : 1;
  static constexpr int buffers = (std::max)(weight_buffers, contractions::size);
  static constexpr index_t pair_buffer = padded<T>(block * queries);

  tile_visibility<typename Op::mask_policy, queries> sees;

  /// Memory shared by all tiles of a thread.
  struct block_memory {
    T* pairs;    ///< the buffers of a block
    T* rows;     ///< what contractions copy
    T* values;   ///< rows that do not lie contiguously
    T* gated;    ///< values behind the value gate
    T* factors;  ///< the tile's output gate
    block_memory(arena<T>& from, problem_shape const& p)
        : pairs(from.take(buffers * pair_buffer)), rows(from.take(rows_scratch(p))),
          values(from.take(block * p.value_width)), gated(from.take(block * p.value_width)),
          factors(from.take(queries * p.output_gate_width)) {}
  };

  /// Values of keys [first, first + n) behind the value gate, contiguous. Called once per block for all tiles of a
  /// head.
  static void gate_values(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h,
                          index_t first, index_t n, T* to) {
    if constexpr (Op::has_value_gate) {
      index_t const head = p.group(h, p.value_heads), width = p.value_width;
      auto const gate = op.value_gate.bind(attune::detail::any_query_row<batch>(p, b, h));
      auto const gates = attune::detail::spread_over(in.value_gate, in.v.extents());
      for (index_t j = 0; j < n; ++j)
        for (index_t d = 0; d < width; d += lanes) {
          alignas(64) T v[lanes] = {}, x[lanes] = {};
          index_t const some = (std::min)(index_t(lanes), width - d);
          for (index_t l = 0; l < some; ++l)
            v[l] = in.v(b, head, first + j, d + l), x[l] = gates(b, head, first + j, d + l);
          (batch::load_aligned(v) * gate.factor(batch::load_aligned(x))).store_aligned(v);
          std::copy_n(v, some, to + j * width + d);
        }
    }
  }

  tile_place place() const { return {p_, b_, h_, first_query_}; }
  index_t rows() const { return count_; }

 protected:
  using bound = decltype(std::declval<Op const&>().bind(std::declval<row<batch> const&>()));
  struct bound_lanes {
    bound at[std::size_t(vectors)];
  };
  using visibility = typename tile_visibility<typename Op::mask_policy, queries>::seen;

  /// Scratch that lives as long as the tile: what contractions pack.
  static index_t packed_scratch(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (index_t(0) + ... + contractor<C, T, Arch>::resident(p));
    }(contractions{});
  }
  static index_t rows_scratch(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (std::max)({index_t(0), contractor<C, T, Arch>::rows(p)...});
    }(contractions{});
  }

  logit_tile(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h, index_t first_query,
             T* packed)
      : logit_tile(std::make_index_sequence<std::size_t(vectors)>{}, op, in, p, b, h, first_query, packed) {}

  template <std::size_t... V>
  logit_tile(std::index_sequence<V...>, Op const& op, inputs_type const& in, problem_shape const& p, index_t b,
             index_t h, index_t first_query, T* packed)
      : sees(op.mask, p, b, h, first_query), op_(&op), p_(&p), b_(b), h_(h), first_query_(first_query),
        count_((std::min)(index_t(queries), p.queries - first_query)), bound_{{op.bind(lane_row(p, index_t(V)))...}},
        packed_(packed) {
    each_contraction([&](auto c, auto const& owner, T* own) {
      contractor<decltype(c), T, Arch>::pack(own, in, owner, tile_place{p_, b_, h_, first_query_});
    });
  }

  /// Visits contraction, its policy, and its packed scratch.
  template <class Visit>
  void each_contraction(Visit const& visit) const {
    [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
      [[maybe_unused]] T* own = packed_;
      (..., (visit(C{}, op_->template owner<Index>(), own), own += contractor<C, T, Arch>::resident(*p_)));
    }(contractions{}, std::make_integer_sequence<int, contractions::size>{});
  }

  /// The saved numbers of lanes [v * lanes, (v + 1) * lanes): x[rows.at(batch, head, query)].
  template <class Rows>
  batch saved_lanes(Rows const& rows, std::vector<T> const& x, int v) const {
    alignas(64) T lane[lanes];
    for (index_t l = 0; l < lanes; ++l)
      lane[l] = x[std::size_t(rows.at(b_, h_, (std::min)(first_query_ + v * lanes + l, p_->queries - 1)))];
    return batch::load_aligned(lane);
  }

  /// The facts of lanes [v * lanes, (v + 1) * lanes).
  row<batch> lane_row(problem_shape const& p, index_t v) {
    row<batch> const facts = facts_of_lanes<T, Arch>(p, b_, h_, first_query_ + v * lanes, sees.count + v * lanes);
    visible_[v] = facts.visible;
    return facts;
  }

  /// Keys of a block that somebody sees. A block on the edge of a mask may still hold a stretch [full_first, full_last)
  /// that everybody sees: only the rest pays for masking.
  struct seen_block {
    index_t first, n, full_first, full_last;
  };
  /// The keys of [first, last) between the first and the last that any row sees, with a bit per row that sees them; n =
  /// 0 where nobody sees any.
  seen_block seen(index_t first, index_t last, std::uint64_t* bits) {
    first = (std::max)(first, sees.hull.first);
    last = (std::min)(last, sees.hull.last);
    if (first >= last) return {first, 0, 0, 0};
    visibility const who = sees.block(first, last, bits);
    if (who == visibility::none) return {first, 0, 0, 0};
    seen_block s{first, last - first, 0, who == visibility::all ? last - first : 0};
    if (who == visibility::some && !sees.common.empty()) {
      s.full_first = std::clamp(sees.common.first - first, index_t(0), s.n);
      s.full_last = std::clamp(sees.common.last - first, s.full_first, s.n);
    }
    return s;
  }

  /// Contractions of the block, then its logits in place of the first buffer. `highest` and `lowest` follow the logits
  /// (the latter the finite ones), `poison` becomes NaN with the first logit that is NaN or +inf.
  struct extremes {
    batch highest[std::size_t(vectors)], lowest[std::size_t(vectors)], poison[std::size_t(vectors)];
  };
  void evaluate(inputs_type const& in, seen_block const& s, std::uint64_t const* bits, block_memory const& memory,
                extremes& e) {
    contract_all(in, s, memory);
    all_logits(memory.pairs, s, bits, e);
  }
  void contract_all(inputs_type const& in, seen_block const& s, block_memory const& memory) const {
    T* pairs = memory.pairs;
    each_contraction([&](auto c, auto const& owner, T* own) {
      contractor<decltype(c), T, Arch>::run(pairs, own, in, owner, tile_place{p_, b_, h_, first_query_},
                                            key_block_place{s.first, s.n}, memory.rows);
      pairs += pair_buffer;
    });
  }
  void all_logits(T* pairs, seen_block const& s, std::uint64_t const* bits, extremes& e) {
    logits<true>(pairs, s.first, 0, s.full_first, bits, e);
    logits<false>(pairs, s.first, s.full_first, s.full_last, bits, e);
    logits<true>(pairs, s.first, s.full_last, s.n, bits, e);
  }

  template <bool Masked>
  ATTUNE_NOINLINE void logits(T* pairs, index_t first, index_t from, index_t to, std::uint64_t const* bits,
                              extremes& e) {
    if (from >= to) return;
    bound_lanes const f = bound_;  // a local copy: stores of logits then cannot be thought to change it
    batch top[vectors], low[vectors], poison[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) top[v] = e.highest[v], low[v] = e.lowest[v], poison[v] = e.poison[v];
    batch const off(-math::infinity<T>());
    for (index_t j = from; j < to; ++j) {
      key<batch> const k{batch(T(first + j))};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* const at = pairs + j * queries + v * lanes;
        batch x[buffers];
        for (int c = 0; c < contractions::size; ++c) x[c] = batch::load_aligned(at + c * pair_buffer);
        batch a = f.at[v].logit(x, k);
        if constexpr (Masked) a = xsimd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), a, off);
        if constexpr (traits.reference == mass_reference::running_maximum) top[v] = math::larger(top[v], a);
        if constexpr (traits.family == row_family::adjusted)
          low[v] = math::select(a == off, low[v], math::smaller(low[v], a));
        if constexpr (traits.family == row_family::candidates) poison[v] = poison[v] + candidate_poison(a);
        a.store_aligned(at);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) e.highest[v] = top[v], e.lowest[v] = low[v], e.poison[v] = poison[v];
  }

  /// Values of keys [first, first + n): in place, copied, or behind the gate (memory.gated: those of the block's keys
  /// from `from`).
  row_block<T> values(inputs_type const& in, index_t first, index_t n, block_memory const& memory, index_t from) const {
    if constexpr (Op::has_value_gate)
      return {memory.gated + (first - from) * p_->value_width, p_->value_width};
    else
      return {in.v, b_, p_->group(h_, p_->value_heads), first, n, memory.values};
  }

  /// sum += P^T V over the block. In the masked stretches a weight of 0 may stand for "not seen", and 0 * NaN is NaN:
  /// where a value there is not finite, only the lanes that see the key take part.
  void add_values(row_block<T> const& values, seen_block const& s, T const* weights, std::uint64_t const* bits,
                  T* sum) const {
    index_t const width = p_->value_width;
    if (finite_rows<T, Arch>(values, width, 0, s.full_first) && finite_rows<T, Arch>(values, width, s.full_last, s.n))
      accumulate<T, Arch>(sum, values.data, values.step, weights, s.n, width);
    else
      accumulate_seen<T, Arch>(sum, values, width, s.n, s.full_first, s.full_last, weights, bits);
  }

  /// The factors behind which the rows of the tile leave, [width | 1][queries]; null without an output gate.
  T const* output_factors(inputs_type const& in, [[maybe_unused]] T* to) const {
    if constexpr (!Op::has_output_gate) {
      return nullptr;
    } else {
      pack_queries<queries>(to, attune::detail::spread_over(in.output_gate, p_->rows(1)), b_, h_, first_query_);
      for (index_t d = 0; d < p_->output_gate_width; ++d)
        for (int v = 0; v < vectors; ++v) {
          T* const at = to + d * queries + v * lanes;
          bound_.at[v].output_gate.factor(batch::load_aligned(at)).store_aligned(at);
        }
      return to;
    }
  }
  /// Writes out = value(lane, d) + weight[lane] v0, behind the output gate.
  template <class Value>
  void write_out(inputs_type const& in, outputs<Op, T> const& to, T const* weight, block_memory const& memory,
                 Value const& value) const {
    [[maybe_unused]] T const* const gate = output_factors(in, memory.factors);
    for (index_t l = 0; l < count_; ++l) {
      index_t const i = first_query_ + l;
      T* const out = to.out.row(b_, h_, i);
      index_t const step = to.out.steps().feature;
      for (index_t d = 0; d < p_->value_width; ++d) out[d * step] = value(l, d);
      if constexpr (traits.ground_value) {
        T const* const v0 = attune::detail::ground_value_row(in.v0, b_, h_, i);
        index_t const v0_step = in.v0.steps().feature;
        for (index_t d = 0; d < p_->value_width; ++d) out[d * step] += weight[l] * v0[d * v0_step];
      }
      if constexpr (Op::has_output_gate)
        for (index_t d = 0; d < p_->value_width; ++d)
          out[d * step] *= gate[(p_->output_gate_width == 1 ? 0 : d) * queries + l];
    }
  }

  Op const* op_;
  problem_shape const* p_;
  index_t b_, h_, first_query_, count_;
  batch visible_[std::size_t(vectors)];
  bound_lanes bound_;
  T* packed_;
};

}  // namespace attune::exec_cpu
