// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_ij = sum F(x_ij') over j' on one side of j      ->      dx_ij' += F'(x_ij') sum dy_ij over j on the other side
//
// Gradients and tangents of ordered sums. The backward pass streams the keys twice. The first pass takes them in the
// order of the sum and keeps the running number of each row at the edge of each block. The second pass takes the blocks
// in the opposite order: it computes the sums of a block again from that number, and carries the sum of dy.
#pragma once

#include <algorithm>

#include <attune/core/dual.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/row/contract.hpp>
#include <attune/exec/cpu/row/parts.hpp>

namespace attune::exec_cpu {

/// An ordered sum reads no tensor: the tile computes it from another contraction, also its gradient and its tangent.
template <class C, class T, class Arch>
  requires contraction::is_ordered<C>
struct contractor<C, T, Arch> : unpacked_contractor<T> {
  template <class... Any>
  static void run(T*, Any const&...) {}
};
template <class C, class T, class Arch>
  requires contraction::is_ordered<C>
struct contraction_vjp<C, T, Arch> : unprepared_vjp<T> {
  template <class Tile, class In, class Owner>
  static void pull(T const*, Tile const&, In const&, Owner const&, key_block_place const&, no_memory const&,
                   gradient_sinks<T>&) {}
};
template <class C, class T, class Arch>
  requires contraction::is_ordered<C>
struct contraction_jvp<C, T, Arch> : unpacked_jvp<T> {
  template <class... Any>
  static void run(T*, Any const&...) {}
};

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

/// The running numbers of a tile: one per row and ordered sum. Does nothing if the operator has none.
template <class T, class Arch, class Op, bool = has_ordered_sums<Op>>
struct ordered_sums {
  template <class... Any>
  void fill(Any const&...) {}
};

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

/// The contractions that ordered sums add.
template <class List>
struct summed_contractions {
  static constexpr bool number(int n) {
    bool found = false;
    contraction::each_ordered<List>([&](auto, auto, auto source) { found = found || decltype(source)::value == n; });
    return found;
  }
};

/// Memory of the gradients of ordered sums that lives as long as the tile: the running numbers before each block,
/// Lk / 64 numbers per row and ordered sum.
template <class T, class Arch, class Op>
struct ordered_tile_memory {
  using types = tile_types<T, Arch, Op>;
  T* edges;
  ordered_tile_memory(arena<T>& from, problem_shape const& p)
      : edges(from.take((p.keys / types::block + 2) * types::queries *
                        contraction::count_ordered<typename Op::contractions>())) {}
};
/// Memory of a block: the derivatives of the maps by their contraction and by each parameter of the logit.
template <class T, class Arch, class Op, int Parameters>
struct ordered_block_memory {
  T* slopes;
  explicit ordered_block_memory(arena<T>& from)
      : slopes(from.take(contraction::count_ordered<typename Op::contractions>() * (1 + Parameters) *
                         tile_types<T, Arch, Op>::pair_buffer)) {}
};

/// The gradients of the ordered sums of a tile. Does nothing if the operator has none.
template <class T, class Arch, class Op, int Parameters, bool = has_ordered_sums<Op>>
struct ordered_gradients {
  explicit ordered_gradients(ordered_tile_memory<T, Arch, Op> const&) {}
  template <class... Any>
  void start(Any const&...) {}
  template <class... Any>
  void fill(Any const&...) {}
  template <class... Any>
  void pull(Any const&...) {}
};

template <class T, class Arch, class Op, int Parameters>
class ordered_gradients<T, Arch, Op, Parameters, true> {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using contractions = typename types::contractions;
  using rows_type = tile_rows<T, Arch, Op>;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;
  static constexpr index_t buffer = types::pair_buffer;
  using D = dual<batch, 1 + Parameters>;
  using moving_bound = decltype(std::declval<Op const&>().bind(std::declval<row<D> const&>()));
  struct moving_lanes {
    moving_bound at[std::size_t(vectors)];
  };

 public:
  explicit ordered_gradients(ordered_tile_memory<T, Arch, Op> const& memory) : edge_(memory.edges) {}

  /// Before the first block: the sums over the keys of other parts (gradient_part). They are 0 if there are none.
  void start(rows_type const& rows, gradient_part<T> const& part) {
    auto const number_of = [&](std::span<T const> x) {
      return [&rows, x, size = x.size() / std::size_t(contraction::count_ordered<contractions>())](int n, index_t l) {
        return x[std::size_t(n) * size + row_number(*rows.p, rows.b, rows.h, rows.query(l))];
      };
    };
    if (!part.running.empty()) running_.start(number_of(part.running));
    if (!part.takes.empty()) grown_.start(number_of(part.takes));
  }
  /// Writes the sums of the gradients by the ordered sums to part.gives.
  void give(rows_type const& rows, gradient_part<T> const& part) const {
    auto const size = part.gives.size() / std::size_t(contraction::count_ordered<contractions>());
    grown_.give([&](int n, batch const* x) { keep_rows(rows, x, part.gives.subspan(std::size_t(n) * size, size)); });
  }

  /// First pass, in the order of the sums: keeps the running numbers, then adds the block to them.
  template <class Memory>
  void prepare(rows_type const& rows, inputs<Op, tensor<T const>> const& in, seen_block const& s,
               std::uint64_t const* bits, Memory const& memory) {
    each_edge([&](batch& x, T* kept) { x.store_aligned(kept); });
    contract_some(rows, in, s, memory, summed_contractions<contractions>{});
    running_.fill(rows, memory.pairs, s, bits);
    edge_ += edge_size;
  }

  /// Second pass, in the opposite order: computes the ordered sums of a block, and the derivatives of the maps, 0 where
  /// a row does not see a key. moving(v): the row of vector v, where direction 1 + s belongs to parameter s.
  template <class Moving>
  void fill(rows_type const& rows, Moving const& moving, T* pairs, seen_block const& s, std::uint64_t const* bits,
            T* slopes) {
    edge_ -= edge_size;
    each_edge([&](batch& x, T* kept) { x = batch::load_aligned(kept); });
    moving_lanes const f = bind(rows, moving, std::make_index_sequence<std::size_t(vectors)>{});
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      batch local[vectors];
      for (batch& x : local) x = batch(T(0));
      batch const* const before = running_.at[decltype(index)::value];
      stretches_in_order<C::order>(s, [&]<bool Masked>(index_t from, index_t to) {
        if (from < to)
          add<Masked, C, decltype(index)::value, decltype(source)::value>(f, pairs, slopes, from, to, bits, before,
                                                                          local);
      });
      slopes += (1 + Parameters) * buffer;
    });
  }

  /// Adds the gradients of what the sums add, and of parameters, to the gradients of a block. `pairs`: the gradients by
  /// all contractions, 0 where a row does not see a key.
  template <class Sums>
  void pull(T* pairs, index_t n, T const* slopes, Sums& by_parameter) {
    contraction::each_ordered<contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      constexpr int at = decltype(index)::value, from = decltype(source)::value;
      for (int v = 0; v < vectors; ++v) {
        batch sum(T(0));
        batch const start = grown_.at[at][v];
        auto parameters = by_parameter[v];
        keys_in_order<contraction::opposite(C::order)>(0, n, [&](index_t j) {
          T* const here = pairs + j * queries + v * lanes;
          T const* const slope = slopes + j * queries + v * lanes;
          batch const next = sum + batch::load_aligned(here + at * buffer);
          batch const by_map = start + (C::own == contraction::own_key::included ? next : sum);
          batch const by_x =
              batch::load_aligned(here + from * buffer) + attune::detail::chained(by_map, batch::load_aligned(slope));
          attune::detail::zero_if_subnormal<15>(by_x).store_aligned(here + from * buffer);
          for (int p = 0; p < Parameters; ++p)
            parameters[std::size_t(p)] = parameters[std::size_t(p)] +
                                         attune::detail::chained(by_map, batch::load_aligned(slope + (1 + p) * buffer));
          sum = next;
        });
        grown_.at[at][v] = start + sum;
        by_parameter[v] = parameters;
      }
      slopes += (1 + Parameters) * buffer;
    });
  }

 private:
  static constexpr index_t edge_size = contraction::count_ordered<contractions>() * queries;

  /// Calls visit(running number, where it is kept).
  template <class Visit>
  void each_edge(Visit const& visit) {
    T* kept = edge_;
    contraction::each_ordered<contractions>([&](auto, auto index, auto) {
      for (int v = 0; v < vectors; ++v, kept += lanes) visit(running_.at[decltype(index)::value][v], kept);
    });
  }
  template <class Moving, std::size_t... V>
  static moving_lanes bind(rows_type const& rows, Moving const& moving, std::index_sequence<V...>) {
    return { {rows.op->bind(moving.template operator()<D>(int(V)))...} };
  }
  template <bool Masked, class C, int Index, int Source>
  ATTUNE_NOINLINE static void add(moving_lanes const& f, T* pairs, T* slopes, index_t from, index_t to,
                                  [[maybe_unused]] std::uint64_t const* bits, batch const* before, batch* local) {
    for (int v = 0; v < vectors; ++v) {
      auto const bound = f.at[v];
      batch sum = local[v];
      batch const start = before[v];
      keys_in_order<C::order>(from, to, [&](index_t j) {
        index_t const at = j * queries + v * lanes;
        auto const seen = [&](batch const& x) {
          if constexpr (Masked)
            return batch(simd::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), x, batch(T(0))));
          else
            return x;
        };
        D const map = contraction::mapped<C>(Op::template part<Index>(bound),
                                             D::variable(batch::load_aligned(pairs + at + Source * buffer), 0));
        batch const next = sum + seen(map.value);
        batch const y = start + (C::own == contraction::own_key::included ? next : sum);
        y.store_aligned(pairs + at + Index * buffer);
        for (int d = 0; d < 1 + Parameters; ++d) seen(map.tangent[d]).store_aligned(slopes + at + d * buffer);
        sum = next;
      });
      local[v] = sum;
    }
  }

  ordered_sums<T, Arch, Op> running_, grown_;  ///< the sums of maps; the sums of dy
  T* edge_;                                    ///< where the next block keeps its running numbers
};

/// The ordered sums of a tile and their tangents. Does nothing if the operator has none.
template <class T, class Arch, class Op, bool = has_ordered_sums<Op>>
struct moving_sums {
  template <class... Any>
  void fill(Any const&...) {}
};

template <class T, class Arch, class Op>
class moving_sums<T, Arch, Op, true> {
  using types = tile_types<T, Arch, Op>;
  using batch = typename types::batch;
  using D = dual<batch, 1>;
  static constexpr int vectors = types::vectors, lanes = types::lanes, queries = types::queries;

 public:
  /// Computes the ordered sums of a block and their tangents, and adds the block to the running numbers.
  template <class MovingLanes>
  void fill(MovingLanes const& f, T* pairs, T* tangents, seen_block const& s, std::uint64_t const* bits) {
    contraction::each_ordered<typename types::contractions>([&](auto c, auto index, auto source) {
      using C = decltype(c);
      constexpr int at = decltype(index)::value, from = decltype(source)::value;
      for (int v = 0; v < vectors; ++v) {
        D sum;
        D const start = at_[at][v];
        stretches_in_order<C::order>(s, [&]<bool Masked>(index_t first, index_t last) {
          keys_in_order<C::order>(first, last, [&](index_t j) {
            index_t const here = j * queries + v * lanes;
            D x(batch::load_aligned(pairs + here + from * types::pair_buffer));
            x.tangent[0] = batch::load_aligned(tangents + here + from * types::pair_buffer);
            D map = contraction::mapped<C>(Op::template part<at>(f.at[v]), x);
            if constexpr (Masked) map = math::select(lanes_of<T, Arch>(bits[j] >> (v * lanes)), map, D());
            D const next = sum + map, y = start + (C::own == contraction::own_key::included ? next : sum);
            y.value.store_aligned(pairs + here + at * types::pair_buffer);
            y.tangent[0].store_aligned(tangents + here + at * types::pair_buffer);
            sum = next;
          });
        });
        at_[at][v] = start + sum;
      }
    });
  }

 private:
  D at_[std::size_t(types::contractions::size)][std::size_t(vectors)] = {};
};

}  // namespace attune::exec_cpu
