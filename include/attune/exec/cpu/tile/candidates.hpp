// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   all logits of a tile, kept in cache -> thresholds of all rows at once -> value sum over the support
//
// The tile of normalizers with a candidate set. Memory: the logits of one tile, Lk x tiling::queries numbers per thread
// (4096 keys of 32 queries in float: 512 KiB), never Lq x Lk. Values of keys outside every support are not read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/pass.hpp>
#include <attune/exec/cpu/tile/value_sum.hpp>
#include <attune/exec/cpu/tile/write.hpp>
#include <attune/policies/candidates.hpp>

namespace attune::exec_cpu {

/// The logits of one batch of rows, in the form that policies/candidates.hpp reads.
template <class T, class Arch>
class lane_column {
  using batch = xsimd::batch<T, Arch>;

 public:
  /// `kept`: memory for the entries that may still matter. It must outlive the column.
  lane_column(T const* logits, index_t step, index_t const* positions, index_t n, batch const& highest,
              std::vector<std::int32_t>& kept)
      : logits_(logits), step_(step), positions_(positions), highest_(highest), kept_(kept) {
    kept_.resize(std::size_t(n));
    std::iota(kept_.begin(), kept_.end(), 0);
  }
  index_t size() const { return index_t(kept_.size()); }
  ATTUNE_INLINE batch logit(index_t n) const { return batch::load_aligned(logits_ + kept_[std::size_t(n)] * step_); }
  batch position(index_t n) const { return batch(T(positions_[kept_[std::size_t(n)]])); }
  batch highest() const { return highest_; }
  template <class Interest>
  void keep(Interest const& interest) {
    std::size_t kept = 0;
    for (std::size_t n = 0; n < kept_.size(); ++n) {
      bool const interests = simd::any(interest(logit(index_t(n))) > batch(T(0)));
      kept_[kept] = kept_[n];
      kept += interests ? 1 : 0;
    }
    kept_.resize(kept);
  }
  /// Bisects the value, for all lanes at once, until few entries are left above it. Selects among those lane by lane.
  void largest(index_t k, batch& cut, batch& last) const {
    T const off = -math::infinity<T>();
    T const wanted = T(k);
    batch const one(T(1)), zero(T(0)), enough(wanted);
    batch low(math::infinity<T>()), high = highest_, finite = zero;
    for (index_t n = 0; n < size(); ++n) {
      batch const a = logit(n);
      low = math::select(a > batch(off), math::smaller(low, a), low);
      finite = finite + math::select(a > batch(off), one, zero);
    }
    batch above = finite;  // entries >= low
    for (int pass = 0; pass < 24 && simd::any(above > batch(T(2)) * enough + batch(T(8))); ++pass) {
      batch const middle = low + (high - low) * batch(T(0.5));
      batch count = zero;
      for (index_t n = 0; n < size(); ++n) count = count + math::select(logit(n) >= middle, one, zero);
      auto const still = count >= enough;
      low = math::select(still, middle, low);
      above = math::select(still, count, above);
      high = math::select(still, high, middle);
    }
    alignas(64) T lows[batch::size], counts[batch::size], cuts[batch::size], lasts[batch::size];
    low.store_aligned(lows);
    finite.store_aligned(counts);
    std::vector<std::int32_t> order[batch::size];
    for (index_t n = 0; n < size(); ++n) {
      std::uint64_t some = bits_of<T, Arch>(logit(n) >= low);
      for (; some != 0; some &= some - 1) order[std::countr_zero(some)].push_back(kept_[std::size_t(n)]);
    }
    for (std::size_t l = 0; l < batch::size; ++l) {
      cuts[l] = lasts[l] = off;
      if (counts[l] < T(k) || index_t(order[l].size()) < k) continue;
      auto const at = [&](std::int32_t n) { return logits_[n * step_ + index_t(l)]; };
      std::nth_element(order[l].begin(), order[l].begin() + (k - 1), order[l].end(),
                       [&](std::int32_t a, std::int32_t b) {
                         return at(a) > at(b) || (!(at(b) > at(a)) && a < b);  // rows ascend with positions
                       });
      cuts[l] = at(order[l][std::size_t(k - 1)]);
      lasts[l] = T(positions_[order[l][std::size_t(k - 1)]]);
    }
    cut = batch::load_aligned(cuts);
    last = batch::load_aligned(lasts);
  }

 private:
  T const* logits_;
  index_t step_;
  index_t const* positions_;
  batch highest_;
  std::vector<std::int32_t>& kept_;
};

template <class T, class Arch, class Op>
class candidate_tile {
  using types = tile_types<T, Arch, Op>;
  using pair_values = exec_cpu::pair_values<T, Arch, Op>;

 public:
  using batch = typename types::batch;
  using inputs_type = typename types::inputs_type;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;
  static constexpr index_t block = types::block;
  static constexpr normalizer_traits traits = types::traits;
  using block_memory = tile_block_memory<T, Arch, Op>;
  static constexpr index_t tiles_of_task = 1;  // one tile, whose logits stay in cache

  /// Memory that lives as long as the tile.
  struct tile_memory {
    T *packed, *sum, *column, *gathered;
    typename candidate_gate<T, Arch, Op>::memory gate;
    tile_memory(arena<T>& from, problem_shape const& p)
        : packed(from.take(packed_queries<T, Arch, Op>::size(p))), sum(from.take(queries * p.value_width)),
          column(from.take(queries * p.keys)), gathered(from.take(types::block * p.value_width)), gate(from, p) {}
  };

  candidate_tile(Op const& op, inputs_type const& in, problem_shape const& p, index_t b, index_t h, index_t first_query,
                 tile_memory const& memory)
      : tile_(op, {&p, b, h, first_query}, memory.packed), sum_(memory.sum), column_(memory.column),
        gathered_(memory.gathered), gate_(memory.gate) {
    pack_contractions(tile_, in);
    std::fill_n(sum_, queries * p.value_width, T(0));
    for (int v = 0; v < vectors; ++v) {
      poison_[v] = batch(T(0));
      highest_[v] = batch(-math::infinity<T>());
    }
  }

  key_interval hull() const { return tile_.sees.hull; }
  tile_place place() const { return tile_.place(); }
  index_t rows() const { return tile_.count; }

  /// Keeps the logits of the keys [first, last).
  ATTUNE_NOINLINE void accumulate(inputs_type const& in, index_t first, index_t last, block_memory const& memory) {
    std::uint64_t bits[types::block];
    auto const s = tile_.seen(first, last, bits);
    if (s.n == 0) return;
    logit_extremes<T, Arch> e;
    for (int v = 0; v < vectors; ++v) e.poison[v] = poison_[v], e.highest[v] = highest_[v], e.lowest[v] = batch(T(0));
    pass_.logits(tile_, in, s, bits, memory, e);
    for (int v = 0; v < vectors; ++v) poison_[v] = e.poison[v], highest_[v] = e.highest[v];
    std::copy_n(memory.pairs, s.n * queries, column_ + index_t(positions_.size()) * queries);
    gate_.keep(memory.pairs, s.n, index_t(positions_.size()));
    for (index_t j = 0; j < s.n; ++j) positions_.push_back(s.first + j);
    blocks_.push_back({s.first, s.n});
  }

  /// Finds the thresholds, sums the values and writes the rows.
  ATTUNE_NOINLINE void finish(inputs_type const& in, outputs<Op, T> const& to, block_memory const& memory) {
    solve();
    index_t row = 0;
    for (key_block_place const& keys : blocks_) {
      std::uint64_t bits[types::block];
      index_t const supported = weigh(row, keys.n, bits);
      if (supported > 0) {
        gate_.apply(tile_, column_, row, keys, bits, memory.pairs);
        pair_values::add(tile_, keys, column_ + row * queries, sum_);
        gate_values<T, Arch>(*tile_.op, in, *tile_.p, tile_.b, tile_.h, keys.first, keys.n, memory.gated);
        row_block<T> values = values_of(tile_, in, keys.first, keys.n, memory, keys.first);
        index_t n = keys.n;
        if (worth_gathering(supported, n)) values = gather(values, column_ + row * queries, bits, n);
        // A lane reads only the keys of its support.
        add_values(tile_, values, {keys.first, n, 0, 0}, column_ + row * queries, bits, sum_);
      }
      row += keys.n;
    }
    alignas(64) T factor[queries], threshold[queries];
    for (int v = 0; v < vectors; ++v) {
      auto const done = finish_candidates(tile_.bound.at[v].normalizer, level_[v], total_[v], poison_[v]);
      done.value_factor.store_aligned(factor + v * lanes);
      done.threshold.store_aligned(threshold + v * lanes);
    }
    write_out(tile_, in, to, factor, memory, [&](index_t l, index_t d) { return sum_[d * queries + l] * factor[l]; });
    for (index_t l = tile_.skipped; l < tile_.count; ++l)
      if (!to.threshold.absent()) to.threshold(tile_.b, tile_.h, tile_.first_query + l, 0) = threshold[l];
  }

  /// Finds thresholds and weights where `finish` is not called.
  void settle() {
    solve();
    std::uint64_t bits[types::block];
    index_t row = 0;
    for (key_block_place const& keys : blocks_) {
      weigh(row, keys.n, bits);
      row += keys.n;
    }
  }

  /// Writes the thresholds that `finish` or `settle` found to `to`.
  template <class Thresholds>
  void thresholds(Thresholds& to) const {
    alignas(64) T reference[queries], level[queries], cut[queries], last[queries], sum[queries];
    for (int v = 0; v < vectors; ++v) {
      level_[v].reference.store_aligned(reference + v * lanes);
      level_[v].level.store_aligned(level + v * lanes);
      level_[v].cut.store_aligned(cut + v * lanes);
      level_[v].last.store_aligned(last + v * lanes);
      batch(total_[v] + poison_[v]).store_aligned(sum + v * lanes);
    }
    for (index_t l = tile_.skipped; l < tile_.count; ++l) {
      auto const n = std::size_t(to.at(tile_.b, tile_.h, tile_.first_query + l));
      to.reference[n] = reference[l], to.level[n] = level[l], to.cut[n] = cut[l], to.last[n] = last[l],
      to.sum[n] = sum[l];
    }
  }

  /// Adds the candidates of each row to `to`. A key below the threshold of a part stays there when parts merge.
  template <class States>
  void states(inputs_type const& in, States& to) {
    solve();
    for (auto& at : level_) at = attune::detail::rounded_down(at);
    alignas(64) T poison[queries];
    for (int v = 0; v < vectors; ++v) poison_[v].store_aligned(poison + v * lanes);
    std::vector<T> logits(column_, column_ + index_t(positions_.size()) * queries);
    std::uint64_t bits[types::block];
    index_t row = 0;
    for (key_block_place const& keys : blocks_) {
      weigh(row, keys.n, bits);
      for (index_t j = 0; j < keys.n; ++j)
        for (index_t l = tile_.skipped; l < tile_.count; ++l)
          if (bits[j] >> l & 1)
            to.add(tile_.b, tile_.h, tile_.first_query + l, logits[std::size_t((row + j) * queries + l)],
                   keys.first + j, [&, factor = gate_.factor(tile_, l, keys.first + j, row + j)](index_t d) {
                     return T(factor * value_of(in, l, keys.first + j, d));
                   });
      row += keys.n;
    }
    for (index_t l = tile_.skipped; l < tile_.count; ++l) to.poison(tile_.b, tile_.h, tile_.first_query + l, poison[l]);
  }

 private:
  /// Finds the thresholds of the rows.
  void solve() {
    for (int v = 0; v < vectors; ++v) {
      lane_column<T, Arch> column(column_ + v * lanes, queries, positions_.data(), index_t(positions_.size()),
                                  highest_[v], kept_[v]);
      level_[v] = tile_.bound.at[v].normalizer.solve(column);
      next_[v] = 0;
      total_[v] = batch(T(0));
    }
  }

  /// Whether the rows saved in the product are worth the gathering: copies of a few rows cost a tenth of the product.
  static bool worth_gathering(index_t supported, index_t n) { return supported < n - n / 8; }
  /// Leaves out the keys of a block that are in no row's support: their values, weights and bits.
  ATTUNE_NOINLINE row_block<T> gather(row_block<T> const& values, T* weights, std::uint64_t* bits, index_t& n) const {
    index_t const width = tile_.p->value_width;
    index_t kept = 0;
    for (index_t j = 0; j < n; ++j) {
      if (bits[j] == 0) continue;
      std::copy_n(values.data + j * values.step, width, gathered_ + kept * width);
      if (j > kept) std::copy_n(weights + j * queries, queries, weights + kept * queries);
      bits[kept++] = bits[j];
    }
    n = kept;
    return {gathered_, width};
  }

  /// Turns logits into weights, in place, for the keys of one block; blocks come in ascending order. bits: the rows
  /// that have the key in their support. Returns how many keys are in any support. Keys that the threshold search
  /// dropped have no weight.
  ATTUNE_POINTWISE index_t weigh(index_t row, index_t n, std::uint64_t* bits) {
    typename tile_rows<T, Arch, Op>::bound_lanes const f = tile_.bound;
    batch const zero(T(0));
    std::fill_n(bits, n, std::uint64_t(0));
    for (int v = 0; v < vectors; ++v) {
      batch sum = zero;
      std::size_t& next = next_[v];
      for (index_t j = 0; j < n; ++j) {
        T* const at = column_ + (row + j) * queries + v * lanes;
        if (next >= kept_[v].size() || kept_[v][next] != row + j) {
          zero.store_aligned(at);
          continue;
        }
        ++next;
        batch const w = f.at[v].normalizer.weight(level_[v], batch::load_aligned(at),
                                                  key<batch>{batch(T(positions_[std::size_t(row + j)]))});
        w.store_aligned(at);
        sum = sum + w;
        std::uint64_t const has = bits_of<T, Arch>(simd::unequal(w, zero));
        bits[j] |= has << (v * lanes);
      }
      total_[v] = total_[v] + sum;
    }
    return n - std::count(bits, bits + n, std::uint64_t(0));
  }

  T value_of(inputs_type const& in, index_t l, index_t j, index_t d) const {
    index_t const head = tile_.p->group(tile_.h, tile_.p->value_heads);
    T v = in.v(tile_.b, head, j, d);
    if constexpr (Op::has_value_gate)
      v *= tile_.op->value_gate.bind(attune::detail::any_query_row<T>(*tile_.p, tile_.b, tile_.h))
               .factor(attune::detail::shared_element<T>(in.value_gate, tile_.b, head, j, d));
    return pair_values::with(tile_, v, l, j, d);
  }

  tile_rows<T, Arch, Op> tile_;
  T *sum_, *column_, *gathered_;
  candidate_gate<T, Arch, Op> gate_;
  batch poison_[std::size_t(vectors)], highest_[std::size_t(vectors)], total_[std::size_t(vectors)];
  std::vector<std::int32_t> kept_[std::size_t(vectors)];
  std::size_t next_[std::size_t(vectors)];
  candidate_threshold<batch> level_[std::size_t(vectors)];
  std::vector<index_t> positions_;
  std::vector<key_block_place> blocks_;
  [[no_unique_address]] row_pass<T, Arch, Op> pass_;
};

}  // namespace attune::exec_cpu
