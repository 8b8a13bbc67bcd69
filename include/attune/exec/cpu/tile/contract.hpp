// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   queries of a tile, a block of keys -> one number per contraction and pair
//
// The third step of a row: the products of tile/contractions.hpp, one contraction after the other. Then the ordered
// sums (policies/ordered_sum.hpp), for which blocks come in the order of the sum: a row carries one number from block
// to block. Then the rows that are read at these sums.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/products/lane_bits.hpp>
#include <attune/exec/cpu/products/row_entries.hpp>
#include <attune/exec/cpu/tile/bind.hpp>
#include <attune/exec/cpu/tile/contractions.hpp>

namespace attune::exec_cpu {

/// An ordered sum reads no tensor: the tile computes it from another contraction.
template <class C, class T, class Arch>
  requires contraction::is_ordered<C>
struct contractor<C, T, Arch> {
  static index_t resident(problem_shape const&) { return 0; }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T*, In const&, Owner const&, tile_place const&) {}
  template <class In, class Owner>
  static void run(T*, T const*, In const&, Owner const&, tile_place const&, key_block_place const&, T*) {}
};

/// A row that is read at an index: its numbers are packed once per tile. `read_rows` below reads them.
template <class C, class T, class Arch>
  requires contraction::is_interpolated<C>
struct contractor<C, T, Arch> {
  static index_t resident(problem_shape const& p) { return packed_rows_size<T, Arch>(p.positions); }
  static index_t rows(problem_shape const&) { return 0; }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const&, tile_place const& at) {
    pack_rows<T, Arch>(to, attune::detail::spread_over(member<C::of>(in), at.p->rows(1)), at.b, at.h, at.first,
                       at.p->first_query);
  }
  template <class In, class Owner>
  static void run(T*, T const*, In const&, Owner const&, tile_place const&, key_block_place const&, T*) {}
};

/// How tiles multiply: in the type of the arithmetic. The other way is `pair_products` (bf16/products.hpp).
struct full_products {
  static constexpr bool of_pairs = false;
  /// Whether a contraction's keys are pairs of numbers in the memory of the block.
  template <class>
  static constexpr bool reads_paired_keys = false;
  template <class C, class T, class Arch>
  using contractor = exec_cpu::contractor<C, T, Arch>;
};

/// Memory shared by all tiles of a thread. Its type also says how the tiles multiply.
template <class T, class Arch, class Op>
struct tile_block_memory {
  using products = full_products;
  using types = tile_types<T, Arch, Op>;
  T* pairs;    ///< the buffers of a block
  T* rows;     ///< copies that contractions make
  T* values;   ///< copies of rows that are not contiguous
  T* gated;    ///< values after the value gate
  T* factors;  ///< factors of the tile's output gate
  tile_block_memory(arena<T>& from, problem_shape const& p)
      : pairs(from.take(types::buffers * types::pair_buffer)), rows(from.take(copied_rows(p))),
        values(from.take(types::block * p.value_width)), gated(from.take(types::block * p.value_width)),
        factors(from.take(types::queries * p.output_gate_width)) {}

  /// Whether a tile reads a field of the keys in the type of the arithmetic.
  static constexpr bool reads_floats(field) { return true; }
  /// Whether a contraction keeps numbers of a block that tiles share.
  static constexpr bool keeps = []<class... C>(contraction::list<C...>) {
    return (false || ... || contraction::Rotary<C>);
  }(typename types::contractions{});
  /// These numbers, of one contraction after the other.
  T* kept(problem_shape const& p) const { return rows + padded<T>(scratch_rows(p)); }
  /// Must be called before the first block.
  void forget(problem_shape const& p) const {
    T* next = kept(p);
    [&]<class... C>(contraction::list<C...>) {
      auto const one = [&](auto c) {
        if constexpr (contraction::Rotary<decltype(c)>)
          detail::turned_keys<T, Arch>(next).forget(), next += contractor<decltype(c), T, Arch>::kept(p);
      };
      (..., one(C{}));
    }(typename types::contractions{});
  }

 private:
  static index_t copied_rows(problem_shape const& p) {
    if constexpr (keeps)
      return padded<T>(scratch_rows(p)) + [&]<class... C>(contraction::list<C...>) {
        auto const of = [&](auto c) {
          if constexpr (contraction::Rotary<decltype(c)>)
            return contractor<decltype(c), T, Arch>::kept(p);
          else
            return index_t(0);
        };
        return (index_t(0) + ... + of(C{}));
      }(typename types::contractions{});
    else
      return scratch_rows(p);
  }
  static index_t scratch_rows(problem_shape const& p) {
    return [&]<class... C>(contraction::list<C...>) {
      return (std::max)({index_t(0), contractor<C, T, Arch>::rows(p)...});
    }(typename types::contractions{});
  }
};

/// Memory that lives as long as the tile: the numbers that contractions pack of its queries.
template <class T, class Arch, class Op, class Products = full_products>
index_t packed_queries(problem_shape const& p) {
  return [&]<class... C>(contraction::list<C...>) {
    return (index_t(0) + ... + Products::template contractor<C, T, Arch>::resident(p));
  }(typename Op::contractions{});
}

/// Visits each contraction with its policy and its part of the packed memory.
template <class Products = full_products, class T, class Arch, class Op, class Visit>
void each_contraction(tile_rows<T, Arch, Op> const& tile, Visit const& visit) {
  [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
    [[maybe_unused]] T* own = tile.packed;
    (..., (visit(C{}, tile.op->template owner<Index>(), own),
           own += Products::template contractor<C, T, Arch>::resident(*tile.p)));
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
}

template <class Products = full_products, class T, class Arch, class Op>
void pack_contractions(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in) {
  each_contraction<Products>(tile, [&](auto c, auto const& owner, T* own) {
    Products::template contractor<decltype(c), T, Arch>::pack(own, in, owner, tile.place());
  });
}

/// Stores contraction n of the block, [key][query], in buffer plane_of(n), which begins at memory.pairs + plane_of(n) *
/// pair_buffer.
template <class T, class Arch, class Op, class Memory>
void contract_all(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
                  Memory const& memory) {
  using products = typename Memory::products;
  using types = tile_types<T, Arch, Op>;
  T* pairs = memory.pairs;
  [[maybe_unused]] int n = 0;
  [[maybe_unused]] T* kept = nullptr;
  if constexpr (tile_block_memory<T, Arch, Op>::keeps) kept = memory.kept(*tile.p);
  [[maybe_unused]] int number = 0;
  each_contraction<products>(tile, [&](auto c, auto const& owner, T* own) {
    using contractor_of = typename products::template contractor<decltype(c), T, Arch>;
    if constexpr (attune::detail::contracts_weights<Op>)
      pairs = memory.pairs + types::plane_of(n++) * types::pair_buffer;
    key_block_place const block{s.first, s.n};
    if constexpr (contraction::Rotary<decltype(c)>)
      contractor_of::run(pairs, own, in, owner, tile.place(), block, kept), kept += contractor_of::kept(*tile.p);
    else if constexpr (products::template reads_paired_keys<decltype(c)>)
      contractor_of::run(pairs, own, tile.place(), block, memory, number);
    else
      contractor_of::run(pairs, own, in, owner, tile.place(), block, memory.rows);
    pairs += types::pair_buffer;
    ++number;
  });
}

/// Calls visit(j) for the keys [from, to) of a block in the order of an ordered sum.
template <contraction::key_order Order, class Visit>
ATTUNE_INLINE void keys_in_order(index_t from, index_t to, Visit const& visit) {
  if constexpr (Order == contraction::key_order::later)
    for (index_t j = to; j-- > from;) visit(j);
  else
    for (index_t j = from; j < to; ++j) visit(j);
}
/// Calls stretch.operator()<Masked>(from, to) for the stretches of a block in that order. Masked: not all rows see all
/// keys.
template <contraction::key_order Order, class Stretch>
void stretches_in_order(seen_block const& s, Stretch const& stretch) {
  if constexpr (Order == contraction::key_order::later) {
    stretch.template operator()<true>(s.full_last, s.n);
    stretch.template operator()<false>(s.full_first, s.full_last);
    stretch.template operator()<true>(0, s.full_first);
  } else {
    stretch.template operator()<true>(0, s.full_first);
    stretch.template operator()<false>(s.full_first, s.full_last);
    stretch.template operator()<true>(s.full_last, s.n);
  }
}

/// The running numbers of a tile: one per row and ordered sum. Empty if the operator has none.
template <class T, class Arch, class Op, bool = has_ordered_sums<Op>>
class ordered_sums {};

template <class T, class Arch, class Op>
class ordered_sums<T, Arch, Op, true> {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using contractions = typename types::contractions;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;

 public:
  ordered_sums() {
    for (auto& of_sum : at)
      for (batch& x : of_sum) x = batch(T(0));
  }

  /// Computes the ordered sums of a block of keys from the numbers of the other contractions, and adds the block to the
  /// running numbers. An ordered sum gives a pair (i, j) the sum of another contraction over the visible keys before or
  /// after j (docs/reference/policies.md#ordered-sums). A block sums from zero: the error grows with the block, not
  /// with Lk.
  void fill(tile_rows<T, Arch, Op> const& tile, T* pairs, seen_block const& s, std::uint64_t const* bits) {
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      batch local[vectors];
      for (batch& x : local) x = batch(T(0));
      batch* const before = at[decltype(index)::value];
      stretches_in_order<C::order>(s, [&]<bool Masked>(index_t from, index_t to) {
        if (from < to)
          add<Masked, C, decltype(index)::value, decltype(source)::value>(tile, pairs, from, to, bits, before, local);
      });
      for (int v = 0; v < vectors; ++v) before[v] = before[v] + local[v];
    });
  }

  /// Sets the running numbers: number(n, l) for ordered sum n and lane l of the tile.
  template <class Number>
  void start(Number const& number) {
    int n = 0;
    contraction::each_ordered<contractions>([&](auto, auto index, auto) {
      for (int v = 0; v < vectors; ++v) {
        alignas(64) T lane[lanes];
        for (index_t l = 0; l < lanes; ++l) lane[l] = number(n, v * lanes + l);
        at[decltype(index)::value][v] = batch::load_aligned(lane);
      }
      ++n;
    });
  }
  /// Calls use(n, numbers of all lanes) with the running numbers.
  template <class Use>
  void give(Use const& use) const {
    int n = 0;
    contraction::each_ordered<contractions>([&](auto, auto index, auto) { use(n++, at[decltype(index)::value]); });
  }

  /// By contraction number; only the numbers of ordered sums are used.
  batch at[std::size_t(contractions::size)][std::size_t(vectors)];

 private:
  template <bool Masked, class C, int Index, int Source>
  ATTUNE_NOINLINE static void add(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t from, index_t to,
                                  [[maybe_unused]] std::uint64_t const* bits, batch const* before, batch* local) {
    // Local copies, so the compiler knows that stores of sums do not change them.
    typename tile_rows<T, Arch, Op>::bound_lanes const f = tile.bound;
    batch sum[vectors], start[vectors];
    for (int v = 0; v < vectors; ++v) sum[v] = local[v], start[v] = before[v];
    keys_in_order<C::order>(from, to, [&](index_t j) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        T* const here = pairs + j * queries + v * lanes;
        batch map = contraction::mapped<C>(Op::template part<Index>(f.at[v]),
                                           batch::load_aligned(here + Source * types::pair_buffer));
        if constexpr (Masked) map = simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), map, batch(T(0)));
        batch const next = sum[v] + map;
        batch const y = start[v] + (C::own == contraction::own_key::included ? next : sum[v]);
        y.store_aligned(here + Index * types::pair_buffer);
        sum[v] = next;
      }
    });
    for (int v = 0; v < vectors; ++v) local[v] = sum[v];
  }
};

/// Reads the rows of a tile at the ordered sums of a block of n keys.
template <class Products = full_products, class T, class Arch, class Op>
void read_rows(tile_rows<T, Arch, Op> const& tile, T* pairs, index_t n) {
  constexpr index_t buffer = tile_types<T, Arch, Op>::pair_buffer;
  int number = 0;
  each_contraction<Products>(tile, [&](auto c, auto const&, T* own) {
    if constexpr (contraction::is_interpolated<decltype(c)>)
      read_rows<T, Arch>(own, tile.p->positions,
                         pairs + contraction::index_number<typename Op::contractions>(number) * buffer,
                         pairs + number * buffer, n);
    ++number;
  });
}

}  // namespace attune::exec_cpu
