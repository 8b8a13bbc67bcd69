// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   queries of a tile, a block of keys -> one number per contraction and pair
//
// The third step of a row: the products of contraction/, one contraction after the other.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/kinds.hpp>
#include <attune/exec/cpu/row/bind.hpp>

namespace attune::exec_cpu {

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
  template <class C>
  using copies_of = typename contractor<C, T, Arch>::copies;
  T* pairs;    ///< the buffers of a block
  T* copies;   ///< of one contraction at a time
  T* kept;     ///< copies that tiles share, of one contraction after the other
  T* values;   ///< copies of rows that are not contiguous
  T* gated;    ///< values after the value gate
  T* factors;  ///< factors of the tile's output gate
  tile_block_memory(arena<T>& from, problem_shape const& p)
      : tile_block_memory(from, p, block_memory_size<T, typename types::contractions, copies_of>(p)) {}

  /// Whether a tile reads a field of the keys in the type of the arithmetic.
  static constexpr bool reads_floats(field) { return true; }
  /// Whether a contraction keeps numbers of a block that tiles share.
  static constexpr bool keeps = []<class... C>(contraction::list<C...>) {
    return (false || ... || is_kept<copies_of<C>>());
  }(typename types::contractions{});
  /// Must be called before the first block.
  void forget(problem_shape const& p) const {
    arena<T> next(kept);
    [&]<class... C>(contraction::list<C...>) {
      auto const one = [&]<class Copies>(std::type_identity<Copies>) {
        if constexpr (is_kept<Copies>()) Copies(next, p).forget();
      };
      (..., one(std::type_identity<copies_of<C>>{}));
    }(typename types::contractions{});
  }

 private:
  template <class Sizes>
  tile_block_memory(arena<T>& from, problem_shape const& p, Sizes const& copied)
      : pairs(from.take(types::planes::count * types::pair_buffer)), copies(from.take(copied.shared)),
        kept(from.take(copied.kept)), values(from.take(types::block * p.value_width)),
        gated(from.take(types::block * p.value_width)), factors(from.take(types::queries * p.output_gate_width)) {}
};

/// Memory that lives as long as the tile: the numbers that contractors pack of its queries.
template <class T, class Arch, class Op, class Products = full_products>
struct packed_queries {
  template <class C>
  using of = typename Products::template contractor<C, T, Arch>::packed;
  static index_t size(problem_shape const& p) { return resident_memory_size<T, typename Op::contractions, of>(p); }
};

/// Visits each contraction with its policy, its packed memory and its number.
template <class Products = full_products, class T, class Arch, class Op, class Visit>
void each_contraction(tile_rows<T, Arch, Op> const& tile, Visit const& visit) {
  arena<T> packed(tile.packed);
  for_each_contraction(*tile.op, [&](auto c, auto const& owner, auto number) {
    using own = typename Products::template contractor<decltype(c), T, Arch>::packed;
    visit(c, owner, own(packed, *tile.p), number);
  });
}

template <class Products = full_products, class T, class Arch, class Op>
void pack_contractions(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in) {
  each_contraction<Products>(tile, [&](auto c, auto const& owner, auto const& own, auto) {
    Products::template contractor<decltype(c), T, Arch>::pack(own, in, owner, tile.place());
  });
}

/// Stores the contractions for which Chosen::number(n) is true, [key][query], each in its buffer plane_of(number).
template <class T, class Arch, class Op, class Memory, class Chosen>
void contract_some(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
                   Memory const& memory, Chosen) {
  using products = typename Memory::products;
  using types = tile_types<T, Arch, Op>;
  arena<T> kept(memory.kept);
  each_contraction<products>(tile, [&](auto c, auto const& owner, auto const& own, auto number) {
    using C = decltype(c);
    using contractor_of = typename products::template contractor<C, T, Arch>;
    constexpr int n = decltype(number)::value;
    [[maybe_unused]] T* const pairs = memory.pairs + types::planes::of(n) * types::pair_buffer;
    [[maybe_unused]] key_block_place const block{s.first, s.n};
    if constexpr (products::template reads_paired_keys<C>) {
      if constexpr (Chosen::number(n)) contractor_of::run(pairs, own, tile.place(), block, memory, n);
    } else {
      auto const copies = memory_of_block<typename contractor_of::copies>(kept, memory.copies, *tile.p);
      if constexpr (Chosen::number(n)) contractor_of::run(pairs, own, in, owner, tile.place(), block, copies);
    }
  });
}
struct every_contraction {
  static constexpr bool number(int) { return true; }
};
/// Stores all contractions of a block.
template <class T, class Arch, class Op, class Memory>
void contract_all(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
                  Memory const& memory) {
  contract_some(tile, in, s, memory, every_contraction{});
}

}  // namespace attune::exec_cpu
