// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_contraction(op, [](auto contraction, auto const& owner, auto number) { ... })
//
// Where contractions run: a tile of queries or a few rows, a block of keys, and the tensors and tables that they read.
//
// The files of this folder have one kind of contraction each, in every pass. Each pass is a template over a
// contraction: contractor (forward), contraction_vjp, contraction_jvp, decode_contractor. A pass names its memory as
// structs over an arena:
//
//   contractor::packed         numbers of the queries, as long as the tile           contractor::copies     for a block
//   contraction_vjp::grown     gradients, as long as the tile                        contraction_vjp::scratch
//   contraction_jvp::moved     tangents of the queries, as long as the tile          contraction_jvp::scratch
//   decode_contractor::packed  numbers of the queries, as long as the rows           decode_contractor::copies
//
// Memory of a block serves one contraction after the other, unless the struct says `kept`: then it lasts as long as the
// task, and the tiles of a task share it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/prefetch.hpp>
#include <attune/exec/cpu/products/tiling.hpp>
#include <attune/exec/problem.hpp>
#include <attune/exec/terms.hpp>

namespace attune::exec_cpu {

using attune::detail::for_each_operand;
using contraction::operand_side;
using contraction::table_place;

/// A tile of queries: lane l is query min(first + l, Lq - 1) of (b, h).
struct tile_place {
  problem_shape const* p;
  index_t b, h, first;
};
/// A block of keys [first, first + n).
struct key_block_place {
  index_t first, n;
};
/// The rows of one task of decode: row r is query (first + r) mod Lq of head `head` + (first + r) / Lq. All these heads
/// read the same head of every tensor that has a row of features per key.
struct decode_place {
  problem_shape const* p;
  index_t b, head, first, rows;
  prefetch_range values = {};  ///< the values of the block, read after its keys
  index_t head_of(index_t r) const { return head + (first + r) / p->queries; }
  index_t query_of(index_t r) const { return (first + r) % p->queries; }
};

/// The tensors and tables of a call. A `Source` gives an operand its numbers: see `given` and moving_call.
template <class In>
struct given {
  In const& in;
  template <field F>
  auto const& tensor_of() const {
    return member<F>(in);
  }
  static table const* table_of(table const& x) { return &x; }
};
/// Tensors, the directions in which they move (absent: not at all), and the directions of the tables.
template <class T, class Op>
struct moving_call {
  inputs<Op, tensor<T const>> const &in, &along;
  std::vector<table> const& tables_along;

  /// The directions in the form that operands read: absent, or null, if constant.
  template <field F>
  auto const& tensor_of() const {
    return member<F>(along);
  }
  table const* table_of(table const& x) const {
    table const& along_x = tables_along[std::size_t(x.number())];
    return along_x.is_set() ? &along_x : nullptr;
  }
};

/// Calls visit(contraction, its policy, its number as a constant) for each contraction.
template <class Op, class Visit>
void for_each_contraction([[maybe_unused]] Op const& op, Visit const& visit) {
  [&]<class... C, int... Number>(contraction::list<C...>, std::integer_sequence<int, Number...>) {
    (..., visit(C{}, op.template owner<Number>(), std::integral_constant<int, Number>{}));
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
}

/// Takes no memory.
struct no_memory {
  template <class... With>
  explicit constexpr no_memory(With const&...) {}
};
/// Whether memory of a block lasts as long as the task.
template <class Memory>
constexpr bool is_kept() {
  if constexpr (requires { Memory::kept; })
    return Memory::kept;
  else
    return false;
}
/// The part of the memory of blocks that belongs to a contraction: a piece of `kept`, or all of `shared`.
template <class Memory, class T, class... With>
Memory memory_of_block(arena<T>& kept, T* shared, With const&... with) {
  if constexpr (is_kept<Memory>())
    return Memory(kept, with...);
  else
    return arena<T>::template in<Memory>(shared, with...);
}
/// The sizes of the memory of blocks. Of<C>: the memory of contraction C.
template <class T, class List, template <class> class Of>
struct block_memory_size {
  index_t shared = 0, kept = 0;
  explicit block_memory_size(problem_shape const& p) {
    [&]<class... C>(contraction::list<C...>) {
      auto const one = [&]<class Memory>(std::type_identity<Memory>) {
        index_t const size = arena<T>::template size_of<Memory>(p);
        if (is_kept<Memory>())
          kept += size;
        else
          shared = (std::max)(shared, size);
      };
      (..., one(std::type_identity<Of<C>>{}));
    }(List{});
  }
};
/// The size of the memory of tiles or rows. Of<C>: the memory of contraction C.
template <class T, class List, template <class> class Of, class... With>
index_t resident_memory_size(With const&... with) {
  arena<T> counts;
  [&]<class... C>(contraction::list<C...>) { (..., static_cast<void>(Of<C>(counts, with...))); }(List{});
  return counts.used();
}

/// Numbers of another type, in memory of T.
template <class Number, class T>
Number* take_numbers(arena<T>& from, index_t count) {
  return reinterpret_cast<Number*>(
      from.take((count * index_t(sizeof(Number)) + index_t(sizeof(T)) - 1) / index_t(sizeof(T))));
}

/// The rows of a field in the form that kernels read: with 16 bits if a block of keys stores them so (key_sources.hpp).
template <field F, class In>
auto const& feature_rows(In const& in) {
  if constexpr (requires { in.stored; })
    return member<F>(*in.stored);
  else
    return member<F>(in);
}

namespace detail {

/// Spreads values per distance i + offset - j to the pairs of a block. values[n] belongs to the distance of the tile's
/// first query and the block's last key, plus n.
template <class T, class Arch>
void spread_distances(T* to, T const* values, index_t n) {
  using tile = tiling<T, Arch>;
  for (index_t j = 0; j < n; ++j)
    for (int v = 0; v < tile::vectors; ++v)
      tile::batch::load_unaligned(values + (n - 1 - j) + v * tile::lanes)
          .store_aligned(to + j * tile::queries + v * tile::lanes);
}
/// The first of those distances.
inline index_t first_distance(tile_place const& at, key_block_place const& block) {
  return at.first + at.p->offset_of(at.b) - (block.first + block.n - 1);
}
/// The farthest distance of any pair. Lanes past the last query have no distance.
inline index_t farthest_distance(tile_place const& at) { return at.p->whole_queries() - 1 + at.p->offset_of(at.b); }
/// The distances that a tile and a block meet, at most.
template <class T, class Arch>
inline constexpr index_t distances_of_block = tiling<T, Arch>::queries + tiling<T, Arch>::key_block;

}  // namespace detail
}  // namespace attune::exec_cpu
