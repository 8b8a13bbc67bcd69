// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The rows of a tile: which they are, which tiles of keys they need, what they see, and the copies of both.
#pragma once

#include <attune/exec/cuda/plan.hpp>
#include <attune/exec/cuda/tile/stage.hpp>
#include <attune/exec/terms.hpp>

namespace attune::exec_cuda {

/// The part of a tile that depends on the rows alone, not on their scores and masses.
template <class W, class Op, class E, class C>
class tile_rows {
  template <class T>
  using of = typename W::template of<T>;
  using facts = tile_facts<Op>;
  using memory = tile_memory<Op, E, C>;
  using format = tile_format<E>;
  using staged = stage<W, C>;
  static constexpr int blocks = C::bn / 8;
  static constexpr bool interval = Op::mask_policy::form == mask_form::interval;

 public:
  static constexpr int R = 2 * C::mi;  ///< rows of a lane
  forward_call<Op, E> const& call;
  typename W::shared shared;
  int warp;
  block_place block;

  ATTUNE_LANE tile_rows(forward_call<Op, E> const& c, typename W::shared sm, int w, block_place at)
      : call(c), shared(sm), warp(w), block(at) {}

  ATTUNE_LANE index_t plan_number() const {
    int const group = call.list_groups == 1 ? 0 : block.group;
    return (index_t(block.batch) * call.list_groups + group) * call.row_tiles + block.tile;
  }
  /// Tile number n of the keys that this tile of rows needs. Full: it is one that every row sees.
  template <bool Full>
  ATTUNE_LANE int key_tile(tile_plan const& plan, int n) const {
    if constexpr (interval && Full) {
      return plan.until + n - plan.partial;
    } else if constexpr (interval) {
      if (n >= plan.partial) return plan.until + n - plan.partial;
      int const before = plan.until - plan.from;
      return n < before ? plan.from + n : plan.after + n - before;
    } else {
      return call.lists[plan_number() * call.key_tiles + n];
    }
  }
  ATTUNE_LANE void locate() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) keys_[k] = staged::lane_of(rows_of(call.key[k]), call.key[k].chunks);
    values_ = staged::lane_of(rows_of(call.value), call.value.chunks);
    if constexpr (interval) {
      static_assert(R <= 4);
      W::for_lanes([&](int l) {
        row_record<Op> const& x = record(row_of(smallest(l & 3, R - 1), l));
        W::at(first_, l) = x.first;
        W::at(last_, l) = x.last;
      });
    }
  }
  /// Copies a tile of keys and values. Whole: all its keys exist.
  template <bool Whole>
  ATTUNE_LANE void fetch(int t, int slot) {
    int const first = t * C::bn, keys = int(call.p.keys);
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k)
      fetch_rows<Whole>(memory::key(k, slot), keys_[k], call.key[k], first, keys);
    fetch_rows<Whole>(memory::value(slot), values_, call.value, first, keys);
    if constexpr (format::split)
      staged::template factors<memory::factor_chunks>(shared, memory::key_factors(0, slot), warp, [&](int n) {
        constexpr int each = C::bn / 4;
        int const which = n / each;
        float const* from = call.value.factors_of(block.batch, head_of(call.value));
        ATTUNE_UNROLL
        for (int k = 0; k < facts::products; ++k)
          if (which == k) from = call.key[k].factors_of(block.batch, head_of(call.key[k]));
        return from + first + n % each * 4;
      });
  }
  template <bool Whole>
  ATTUNE_LANE void fetch_rows(int to, of<unsigned char const*> const& from, operand_of<E> const& rows, int first,
                              int keys) {
    staged::template keys<C::bn, Whole>(shared, to, warp, from, rows, first, keys);
    if constexpr (format::split) {
      auto const second = W::each_lane([&](int l) { return W::at(from, l) + rows.plane; });
      staged::template keys<C::bn, Whole>(shared, to + memory::key_plane, warp, second, rows, first, keys);
    }
  }
  /// Copies the rows of this tile.
  ATTUNE_LANE void fetch_queries() {
    ATTUNE_UNROLL
    for (int k = 0; k < facts::products; ++k) fetch_own(memory::query(k), call.query[k]);
  }
  /// Copies the rows of this tile from an operand with the positions and heads of queries.
  ATTUNE_LANE void fetch_own(int to, operand_of<E> from) {
    staged::queries(shared, to, warp, from, block.batch, block.group, call.pack, block.tile * C::rows, call.rows);
    if constexpr (format::split) {
      from.data += from.plane;
      staged::queries(shared, to + memory::query_plane, warp, from, block.batch, block.group, call.pack,
                      block.tile * C::rows, call.rows);
    }
  }
  /// The tiles of keys of this tile of rows. Of an interval mask, every warp finds them for itself.
  ATTUNE_LANE tile_plan make_plan() const {
    if constexpr (interval) {
      of<int> from, to, full_from, full_to;
      W::for_lanes([&](int l) {
        W::at(from, l) = W::at(full_to, l) = int(call.p.keys);
        W::at(to, l) = W::at(full_from, l) = 0;
      });
      ATTUNE_UNROLL
      for (int x = 0; x < C::rows; x += 32)
        W::for_lanes([&](int l) {
          int const n = block.tile * C::rows + x + l;
          if (n >= call.rows) return;
          row_record<Op> const& row = record({n, block.group, call.pack});
          bool const some = row.first < row.last;
          W::at(from, l) = some ? smallest(W::at(from, l), row.first) : W::at(from, l);
          W::at(to, l) = some ? largest(W::at(to, l), row.last) : W::at(to, l);
          W::at(full_from, l) = largest(W::at(full_from, l), row.first);
          W::at(full_to, l) = some ? smallest(W::at(full_to, l), row.last) : 0;
        });
      return plan_of_interval(over_lanes(from, smallest), over_lanes(to, largest), over_lanes(full_from, largest),
                              over_lanes(full_to, smallest), C::bn);
    } else {
      return call.plans[plan_number()];
    }
  }
  ATTUNE_LANE static int smallest(int a, int b) { return b < a ? b : a; }
  ATTUNE_LANE static int largest(int a, int b) { return a < b ? b : a; }
  ATTUNE_LANE static int over_lanes(of<int> x, int (*combine)(int, int)) {
    for (int mask = 16; mask > 0; mask /= 2) {
      of<int> const y = W::shfl_xor(x, mask);
      W::for_lanes([&](int l) { W::at(x, l) = combine(W::at(x, l), W::at(y, l)); });
    }
    int result = 0;
    W::for_lanes([&](int l) { result = W::at(x, l); });
    return result;
  }
  /// The head of keys or values that the tile reads.
  ATTUNE_LANE int head_of(operand const& x) const {
    return int(index_t(block.group * call.pack) * x.heads / call.p.heads);
  }
  ATTUNE_LANE unsigned char const* rows_of(operand const& x) const { return x.rows(block.batch, head_of(x)); }

  /// Which rows of the tile the warp has; C::parts warps have them together.
  ATTUNE_LANE int own() const { return warp / C::parts; }
  /// The number of row r of this lane in its group; may be past the last.
  ATTUNE_LANE int row_in_group(int r, int l) const {
    return block.tile * C::rows + own() * (16 * C::mi) + (r / 2) * 16 + (r % 2) * 8 + l / 4;
  }
  ATTUNE_LANE group_row row_of(int r, int l) const {
    int const n = row_in_group(r, l);  // smallest() makes nvcc 13.0 spill in one kernel
    return {n < call.rows ? n : call.rows - 1, block.group, call.pack};
  }
  ATTUNE_LANE index_t row_number(group_row const& at) const { return call.row_number(block.batch, at.head, at.query); }
  ATTUNE_LANE row_record<Op> const& record(group_row const& at) const { return call.records[row_number(at)]; }

  /// Bit 2 n + e where 8 n + e < d, for the blocks n of a tile and e of 0 and 1.
  ATTUNE_LANE static std::uint32_t bits_before(int d) {
    int const inside = smallest(largest(d, 0), C::bn);
    return std::uint32_t((std::uint64_t(1) << (2 * (inside / 8) + smallest(inside % 8, 2))) - 1);
  }
  /// Which of the lane's keys of a tile row r sees: bit 2 n + e for key 8 n + 2 (l % 4) + e.
  ATTUNE_LANE of<std::uint32_t> seen_keys(int t, int r) const {
    if constexpr (interval) {
      of<int> const owner = W::each_lane([&](int l) { return (l & ~3) + r; });
      of<int> const first = W::shfl(first_, owner), last = W::shfl(last_, owner);
      return W::each_lane([&](int l) {
        int const key0 = t * C::bn + 2 * (l & 3);
        return bits_before(W::at(last, l) - key0) & ~bits_before(W::at(first, l) - key0);
      });
    } else {
      return W::each_lane([&](int l) { return listed_keys(t, r, l); });
    }
  }
  /// The same for masks that are no intervals.
  ATTUNE_LANE std::uint32_t listed_keys(int t, int r, int l) const {
    row_record<Op> const& x = record(row_of(r, l));
    int const key0 = t * C::bn + 2 * (l & 3), first = x.first, last = x.last;
    group_row const at = row_of(r, l);
    mask_row const row = call.p.row(block.batch, at.head, at.query);
    key_interval k{0, 0};
    std::uint32_t bits = 0;
    ATTUNE_ROLLED
    for (int n = 0; n < 2 * blocks; ++n) {
      int const j = key0 + 8 * (n / 2) + n % 2;
      if (j < first || j >= last) continue;
      if constexpr (Op::mask_policy::form == mask_form::predicate) {
        bits |= std::uint32_t(mask::sees(call.op.mask, row, j)) << n;
      } else {
        if (j >= k.last) {
          k = mask::next(call.op.mask, row, j);
          if (k.empty()) break;
        }
        bits |= std::uint32_t(j >= k.first) << n;
      }
    }
    return bits;
  }

  /// The values of all contractions of a pair.
  template <class Product>
  ATTUNE_LANE void contract(typename format::scalar* x, Product const& product, int r, int j, int l) const {
    contract(call, block.batch, x, product, row_of(r, l), j);
  }
  /// The same for any row of a call. A key past the last counts as the last.
  template <class Product>
  ATTUNE_LANE static void contract(forward_call<Op, E> const& call, int batch, typename format::scalar* x,
                                   [[maybe_unused]] Product const& product, group_row const& at, int j) {
    index_t const keys = call.p.keys, key = j < keys ? j : keys - 1;
    for_each_contraction(typename Op::contractions{}, [&](auto contraction, auto number, auto place) {
      using chosen = decltype(contraction);
      constexpr int index = decltype(number)::value, k = decltype(place)::value;
      if constexpr (is_distance<chosen>) {
        float const d = call.query_norm[call.row_number(batch, at.head, at.query)] +
                        call.key_norm[(batch * call.p.heads + at.head) * keys + key] - 2.f * product(k);
        x[index] = d < 0.f ? 0.f : d;
      } else if constexpr (k >= 0) {
        x[index] = product(k);
      } else {
        x[index] = attune::detail::contracted<chosen, float>(call.in, call.p, call.op.template owner<index>(),
                                                             {batch, at.head, at.query, key});
      }
    });
  }

 private:
  of<int> first_, last_;  ///< of an interval mask: the keys that row l % 4 of lane l sees
  of<unsigned char const*> keys_[facts::products == 0 ? 1 : facts::products], values_;
};

}  // namespace attune::exec_cuda
