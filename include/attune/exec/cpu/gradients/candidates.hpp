// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   all contractions of a tile, kept in cache -> weights at the saved thresholds -> d logit over the support
//
// The gradients of normalizers with a candidate set, by the rules of exec/row_slopes.hpp. Memory: the contractions,
// logits and h of one tile. Blocks of keys without any weight are skipped after their logits.
#pragma once

#include <vector>

#include <attune/exec/cpu/gradients/tile.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/tile/candidates.hpp>
#include <attune/exec/row_slopes.hpp>

namespace attune::exec_cpu {

template <class T, class Arch, class Op>
class candidate_gradients {
  using types = tile_types<T, Arch, Op>;
  using base = gradient_tile<T, Arch, Op>;

 public:
  using value_type = T;
  using batch = typename types::batch;
  using normalizer = typename types::normalizer;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries, pairs = types::pairs;
  static constexpr index_t block = types::block;
  using call = typename base::call_type;
  using block_memory = typename base::block_memory;
  static constexpr int logit_pairs = types::logit_pairs;
  /// Columns of numbers per pair: the contractions, and the random numbers of a weight gate.
  static constexpr int columns = pairs + int(attune::detail::draws_numbers<Op>);
  static constexpr index_t tiles_of_task = 1;  // one tile, whose columns stay in cache

  struct tile_memory : base::tile_memory {
    T *logits, *gain, *pairs_at, *out;
    tile_memory(arena<T>& from, problem_shape const& p)
        : base::tile_memory(from, p), logits(from.take(column(p))), gain(from.take(column(p))),
          pairs_at(from.take(columns * column(p))), out(from.take(queries * p.value_width)) {}
  };

  candidate_gradients(call const& c, index_t b, index_t h, index_t first_query, tile_memory const& memory,
                      block_memory const& shared)
      : tile_(c, b, h, first_query, memory, shared), logits_(memory.logits), gain_(memory.gain),
        pairs_(memory.pairs_at), out_(memory.out) {
    for (int v = 0; v < vectors; ++v) {
      auto const at = [&](std::span<T const> x) { return tile_.rows.saved_lanes(c.saved, x, v); };
      level_[v] = {at(c.saved.reference), at(c.saved.level), at(c.saved.cut), at(c.saved.last)};
      poison_[v] = batch(T(0));
    }
  }

  key_interval hull() const { return tile_.rows.sees.hull; }

  /// Keeps the contractions and logits of the keys [first, last) and sums their weights. If any key has weight, keeps
  /// h.
  ATTUNE_NOINLINE void accumulate(index_t first, index_t last, block_memory const& memory, gradient_sinks<T>&) {
    std::uint64_t bits[types::block];
    auto s = tile_.rows.seen(first, last, bits);
    if (s.n == 0) return;
    contract_all(tile_.rows, tile_.call->in, s, memory);
    draw_numbers(tile_.rows, memory.pairs, key_block_place{s.first, s.n});
    for (int c = 0; c < columns; ++c)
      std::copy_n(memory.pairs + types::planes::of(c) * types::pair_buffer, s.n * queries,
                  pairs_ + c * column(*tile_.rows.p) + rows_ * queries);
    logit_extremes<T, Arch> e;
    for (int v = 0; v < vectors; ++v) e.highest[v] = e.lowest[v] = batch(T(0)), e.poison[v] = poison_[v];
    all_logits(tile_.rows, memory.pairs, s, bits, e);  // bitwise the same logits as in the forward pass
    for (int v = 0; v < vectors; ++v) poison_[v] = e.poison[v];
    if (!tile_.drop_idle_lanes(s, bits)) std::fill(bits + s.full_first, bits + s.full_last, ~std::uint64_t(0));
    T* const logits = logits_ + rows_ * queries;
    std::copy_n(memory.pairs, s.n * queries, logits);
    bool const any = add_weights(logits, s.first, s.n);
    seen_.insert(seen_.end(), bits, bits + s.n);
    blocks_.push_back({{s.first, s.n}, rows_, any});
    if (any) {
      tile_.gains(gain_ + rows_ * queries, s, memory, first);
      add_slopes(logits, gain_ + rows_ * queries, s.first, s.n, rows_);
    }
    rows_ += s.n;
  }

  ATTUNE_NOINLINE void finish(index_t first_of_task, block_memory const& memory, gradient_sinks<T>& to) {
    gradient_part<T> const& part = tile_.call->part;
    if (!part.gives.empty()) return give_sums();
    batch keys[vectors];
    std::fill_n(keys, vectors, batch(T(rows_)));
    if (!part.takes.empty()) take_sums(keys);
    bool poisoned = false;
    for (int v = 0; v < vectors; ++v) {
      poisoned = poisoned || !simd::all(poison_[v] == poison_[v]);
      factor_[v] =
          finish_candidates(tile_.rows.bound.at[v].normalizer, level_[v], sums_[v].weights, poison_[v]).value_factor;
      slopes_[v] = sums_[v].finish(keys[v]);
    }
    if (!part.ends.empty()) {
      batch through[vectors];
      for (int v = 0; v < vectors; ++v) through[v] = slopes_[v].through_reference;
      drop_spent(tile_.rows, std::span<T const>(part.ends), through);
      for (int v = 0; v < vectors; ++v) slopes_[v].through_reference = through[v];
    }
    if constexpr (Op::has_output_gate) output_gate(first_of_task, memory, to);
    for (auto const& b : blocks_) {
      if (!b.any && !poisoned) continue;
      T* const gain = gain_ + b.row * queries;
      pull_pairs(b.row, b.keys.first, b.keys.n, b.any);
      tile_.pull_block(
          b.keys, [&](int n) -> T const* { return pairs_ + n * column(*tile_.rows.p) + b.row * queries; }, gain, memory,
          to);
    }
    tile_.flush(first_of_task, to);
    gate_.flush(tile_, first_of_task, to);
    if (!part.ends.empty()) {
      batch rest[vectors];
      for (int v = 0; v < vectors; ++v) rest[v] = slopes_[v].through_reference;
      keep_rows(tile_.rows, rest, part.ends);
    }
  }

 private:
  using counts = typename base::counts;
  using gate_type = weight_gate_gradients<T, Arch, Op>;
  using logit_dual = typename base::template logit_dual<>;
  using row_sums = attune::detail::candidate_sums<batch, types::traits.threshold>;
  // Directions of a weight: the logit, the row constant, the normalizer's parameters.
  using weight_dual = dual<batch, 1 + base::shifts + counts::normalizer>;
  using weight_bound = decltype(std::declval<normalizer const&>().bind(std::declval<row<weight_dual> const&>()));
  struct kept_block {
    key_block_place keys;
    index_t row;
    bool any;
  };

  static index_t column(problem_shape const& p) { return padded<T>(queries * p.keys); }

  /// Adds the sums of the rows to the sums over other keys.
  void give_sums() {
    for (int n = 0; n < candidate_row_sums; ++n) {
      alignas(64) T more[queries];
      for (int v = 0; v < vectors; ++v) sum_number(n, v, batch(T(rows_))).store_aligned(more + v * lanes);
      for (index_t l = 0; l < tile_.rows.count; ++l) sum_of_row(n, l) += more[l];
    }
  }
  /// Replaces the sums of the rows by the sums over all keys.
  void take_sums(batch* keys) {
    std::span<T const> const sums = tile_.call->part.takes;
    auto const rows = sums.size() / candidate_row_sums;
    for (int v = 0; v < vectors; ++v) {
      auto const number = [&](std::size_t n) {
        return tile_.rows.saved_lanes(tile_.call->saved, sums.subspan(n * rows, rows), v);
      };
      sums_[v].weights = number(0), sums_[v].slope = number(1), sums_[v].gains = number(2);
      sums_[v].lag = number(3), sums_[v].lag_gains = number(4);
      poison_[v] = number(5), keys[v] = number(6);
    }
  }
  batch sum_number(int n, int v, batch const& keys) const {
    row_sums const& s = sums_[v];
    batch const all[candidate_row_sums] = {s.weights, s.slope, s.gains, s.lag, s.lag_gains, poison_[v], keys};
    return all[n];
  }
  T& sum_of_row(int n, index_t l) const {
    std::span<T> const sums = tile_.call->part.gives;
    index_t const row = tile_.call->saved.at(tile_.rows.b, tile_.rows.h, tile_.rows.first_query + l);
    return sums[std::size_t(n) * (sums.size() / candidate_row_sums) + std::size_t(row)];
  }

  /// Sums the weights. Returns whether any key has one.
  ATTUNE_POINTWISE bool add_weights(T const* logits, index_t first, index_t n) {
    typename tile_rows<T, Arch, Op>::bound_lanes const f = tile_.rows.bound;
    bool any = false;
    for (int v = 0; v < vectors; ++v) {
      batch sum(T(0));
      for (index_t j = 0; j < n; ++j)
        sum = sum + f.at[v].normalizer.weight(level_[v], batch::load_aligned(logits + j * queries + v * lanes),
                                              key<batch>{batch(T(first + j))});
      any = any || !simd::all(sum == batch(T(0)));
      sums_[v].weights = sums_[v].weights + sum;
    }
    return any;
  }
  /// `row`: the block's first row of the columns.
  ATTUNE_POINTWISE void add_slopes(T const* logits, T const* gain, index_t first, index_t n,
                                   [[maybe_unused]] index_t row) {
    using D = typename row_sums::D;
    for (int v = 0; v < vectors; ++v) {
      auto const f =
          tile_.normalizer_of(attune::detail::standing<D>(tile_.facts[v], tile_.rows.bound.at[v].logit_shift));
      auto const level = row_sums::moving(level_[v]);
      row_sums sums;
      for (index_t j = 0; j < n; ++j) {
        index_t const at = j * queries + v * lanes;
        batch const h = gated_gain<Op>(tile_.rows.bound.at[v], batch::load_aligned(gain + at),
                                       number_of(row * queries + at), key<batch>{batch(T(first + j))});
        sums.add(f.weight(level, row_sums::moving(batch::load_aligned(logits + at)), key<D>{D(batch(T(first + j)))}),
                 h);
      }
      sums_[v].add(sums);
    }
  }
  /// Turns contractions, logits and h of a block into gradients by the contractions, and into weights, in place.
  ATTUNE_POINTWISE void pull_pairs(index_t row, index_t first, index_t n, bool any) {
    using attune::detail::chained;
    T* const gain = gain_ + row * queries;
    T const* const logits = logits_ + row * queries;
    if (!any) std::fill_n(gain, n * queries, T(0));
    batch const zero(T(0));
    T* const numbers = numbers_of_gate();
    for (int v = 0; v < vectors; ++v) {
      auto const f = tile_.moving.at[v];
      weight_bound const w = tile_.normalizer_of(tile_.template normalizer_row<weight_dual>(v, 1));
      candidate_threshold<weight_dual> const level{weight_dual(level_[v].reference), weight_dual(level_[v].level),
                                                   weight_dual(level_[v].cut), weight_dual(level_[v].last)};
      batch through_reference = slopes_[v].through_reference;
      auto by_parameter = tile_.by_logit_parameter[v];
      auto by_normalizer = tile_.by_normalizer[v];
      auto by_gate = gate_.sums(v);
      auto const gate = gate_type::template bind<chain_rule::guarded>(tile_, v);
      for (index_t j = 0; j < n; ++j) {
        index_t const at = j * queries + v * lanes;
        auto const lanes_seen = lanes_of<T, Arch>(seen_[std::size_t(row + j)] >> (v * lanes));
        logit_dual moved[logit_pairs + 1];
        ATTUNE_UNROLL_FEW
        for (int c = 0; c < logit_pairs; ++c)
          moved[c] =
              logit_dual::variable(batch::load_aligned(pairs_ + c * column(*tile_.rows.p) + row * queries + at), c);
        logit_dual const a = f.logit(moved, key<logit_dual>{logit_dual(batch(T(first + j)))});
        weight_dual const p = w.weight(level, weight_dual::variable(batch::load_aligned(logits + at), 0),
                                       key<weight_dual>{weight_dual(batch(T(first + j)))});
        batch h = math::select(p.value == zero, zero, batch::load_aligned(gain + at)), weight = p.value * factor_[v];
        // Outside the support the weight gate changes nothing.
        auto const outside = weight == zero;
        auto const factor =
            gate_type::template factor<chain_rule::guarded>(gate, numbers + row * queries + at, first + j);
        batch by_number = zero;
        batch const gated = gate_type::template weigh<chain_rule::guarded>(
            by_gate, factor, weight, h,
            [&](batch const& x) { return math::select(lanes_seen, math::select(outside, zero, x), zero); }, &by_number);
        if constexpr (logit_pairs < pairs) by_number.store_aligned(numbers + row * queries + at);
        h = math::select(outside, h, gate_type::gain(factor, h));
        weight = math::select(outside, zero, gated);
        batch const by_p = slopes_[v].by_weight(h);
        batch by_logit = math::select(lanes_seen, batch(chained(p.tangent[0], by_p) + poison_[v]), zero);
        by_logit = gate_type::by_logit(by_logit);
        if constexpr (row_sums::selects) {  // the first of the highest logits gets the part through the reference
          batch const here = math::select(p.value == zero, zero, through_reference);
          batch const through = math::select(batch::load_aligned(logits + at) == level_[v].reference, here, zero);
          through_reference = math::select(through == zero, through_reference, zero);
          by_logit = math::select(through == zero, by_logit, batch(by_logit + through));
        }
        math::select(lanes_seen, weight, zero).store_aligned(gain + at);
        tile_.entries.pull(v, moved, first + j, by_logit);
        ATTUNE_UNROLL_FEW
        for (int c = 0; c < logit_pairs; ++c)
          chained(by_logit, a.tangent[c]).store_aligned(pairs_ + c * column(*tile_.rows.p) + row * queries + at);
        ATTUNE_UNROLL_FEW
        for (int s = 0; s < counts::logit; ++s)
          by_parameter[std::size_t(s)] = by_parameter[std::size_t(s)] + chained(by_logit, a.tangent[logit_pairs + s]);
        ATTUNE_UNROLL_FEW
        for (int s = 0; s < base::shifts + counts::normalizer; ++s)
          by_normalizer[std::size_t(s)] =
              by_normalizer[std::size_t(s)] +
              math::select(lanes_seen, batch(chained(p.tangent[1 + s], by_p) + poison_[v]), zero);
      }
      tile_.by_logit_parameter[v] = by_parameter;
      tile_.by_normalizer[v] = by_normalizer;
      gate_.set_sums(v, by_gate);
      slopes_[v].through_reference = through_reference;
    }
  }

  /// The column of the numbers that the weight gate reads, if it reads any.
  T* numbers_of_gate() const { return pairs_ + logit_pairs * column(*tile_.rows.p); }
  batch number_of(index_t at) const { return gate_number<Op, batch>(numbers_of_gate() + at); }

  /// Needs the finished rows, so computes their value sums again.
  void output_gate(index_t first_of_task, block_memory const& memory, gradient_sinks<T>& to) {
    aligned_buffer<T> const weights(types::pair_buffer);
    std::fill_n(out_, queries * tile_.rows.p->value_width, T(0));
    std::uint64_t bits[types::block];
    for (auto const& b : blocks_) {
      if (!b.any) continue;
      for (index_t j = 0; j < b.keys.n; ++j) {
        bits[j] = 0;
        for (int v = 0; v < vectors; ++v) {
          index_t const at = (b.row + j) * queries + v * lanes;
          batch const w = tile_.rows.bound.at[v].normalizer.weight(level_[v], batch::load_aligned(logits_ + at),
                                                                   key<batch>{batch(T(b.keys.first + j))}) *
                          factor_[v];
          auto const supported = simd::unequal(w, batch(T(0)));
          batch const gated =
              gated_weight<Op>(tile_.rows.bound.at[v], w, number_of(at), key<batch>{batch(T(b.keys.first + j))});
          math::select(supported, gated, w).store_aligned(weights.data() + j * queries + v * lanes);
          bits[j] |= bits_of<T, Arch>(supported) << (v * lanes);
        }
      }
      gate_values<T, Arch>(*tile_.rows.op, tile_.call->in, *tile_.rows.p, tile_.rows.b, tile_.rows.h, b.keys.first,
                           b.keys.n, memory.gated);
      seen_block const some{b.keys.first, b.keys.n, 0, 0};
      add_values(tile_.rows, values_of(tile_.rows, tile_.call->in, b.keys.first, b.keys.n, memory, b.keys.first), some,
                 weights.data(), bits, out_);
      pair_values<T, Arch, Op>::add(tile_.rows, b.keys, weights.data(), out_);
    }
    tile_.pull_output_gate(first_of_task, to, [&](index_t l, index_t d) { return out_[d * queries + l]; });
  }

  base tile_;
  T *logits_, *gain_, *pairs_, *out_;
  index_t rows_ = 0;
  std::vector<std::uint64_t> seen_;
  std::vector<kept_block> blocks_;
  candidate_threshold<batch> level_[std::size_t(vectors)];
  row_sums sums_[std::size_t(vectors)];
  attune::detail::candidate_slopes<batch> slopes_[std::size_t(vectors)];
  batch poison_[std::size_t(vectors)], factor_[std::size_t(vectors)];
  [[no_unique_address]] gate_type gate_;
};

}  // namespace attune::exec_cpu
