// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   S^T[key][query] = sum_c K[key][c] . Q^T[c][query]      c: pairs of features
//
// The contractions of a tile on pairs of bf16 numbers: queries are paired once per tile, keys once per block for all
// tiles of a task.
#pragma once

#include <attune/exec/cpu/bf16/multiply.hpp>
#include <attune/exec/cpu/row/contract.hpp>

namespace attune::exec_cpu {

/// Keys of a block as pairs of features: key `first` at `data`, the next one `step` pairs later.
struct paired_keys {
  number_pair const* data;
  index_t step, first;
};

/// How tiles multiply pairs of bf16 numbers. Plain dot products of inputs are products of pairs; other contractions are
/// computed in float.
template <class Unit>
struct pair_products {
  static constexpr bool of_pairs = true;
  template <class C>
  static constexpr bool reads_paired_keys = contraction::PlainProduct<C>;
  template <class C, class Arch>
  struct pair_contractor {
    static constexpr int queries = tiling<float, Arch>::queries;
    struct packed {
      number_pair* q;
      packed(arena<float>& from, problem_shape const& p)
          : q(take_numbers<number_pair>(from, queries * pairs_of(p.width_of(C::x::of)))) {}
    };
    template <class In, class Owner>
    static void pack(packed const& to, In const& in, Owner const&, tile_place const& at) {
      pack_query_pairs<queries>(to.q, member<C::x::of>(in), at.b, at.h, at.first);
    }
    template <class Memory>
    static void run(float* to, packed const& own, tile_place const& at, key_block_place const& block,
                    Memory const& memory, int number) {
      paired_keys const keys = memory.keys_of(*at.p, number);
      pair_multiplier<Unit>::template contract<Arch>(to, keys.data + (block.first - keys.first) * keys.step, keys.step,
                                                     own.q, keys.step, block.n);
    }
  };
  template <class C, class T, class Arch>
  using contractor =
      std::conditional_t<contraction::PlainProduct<C>, pair_contractor<C, Arch>, exec_cpu::contractor<C, T, Arch>>;
};

/// Memory shared by all tiles of a thread: the float tiles' memory, and the keys of a block as pairs of features.
template <class Arch, class Op, class Unit>
struct pair_key_memory : tile_block_memory<float, Arch, Op> {
  using base = tile_block_memory<float, Arch, Op>;
  using products = pair_products<Unit>;
  using contractions = typename Op::contractions;
  static constexpr index_t block = base::types::block;

  typename pair_multiplier<Unit>::session session;
  index_t* first_key;      ///< the first key of the block
  number_pair* key_pairs;  ///< of one contraction after the other: [key][pair of features]

  pair_key_memory(arena<float>& from, problem_shape const& p)
      : base(from, p), session(pairs_of(p.width)), first_key(take_numbers<index_t>(from, 1)),
        key_pairs(take_numbers<number_pair>(from, block * pairs_of_keys(p, contractions::size))) {}

  /// Pairs the keys [from, to) of a head of the inputs. `at` names the batch element and the head.
  template <class View>
  void pack_keys(inputs<Op, View> const& in, problem_shape const& p, tile_place const& at, index_t from,
                 index_t to) const {
    *first_key = from;
    number_pair* next = key_pairs;
    each_paired([&]<class C>(C, int) {
      index_t const width = p.width_of(C::y::of), head = p.group(at.h, p.heads_of(C::y::of));
      auto const& x = member<C::y::of>(in);
      for (index_t j = from; j < to; ++j, next += pairs_of(width))
        pair_row(reinterpret_cast<bfloat16*>(next), x.row(at.b, head, j), x.steps().feature, width);
      next += (block - (to - from)) * pairs_of(width);
    });
  }

  /// The keys of contraction `number`, which is a plain product.
  paired_keys keys_of(problem_shape const& p, int number) const {
    index_t const before = pairs_of_keys(p, number);
    return {key_pairs + block * before, pairs_of_keys(p, number + 1) - before, *first_key};
  }

 protected:
  /// Calls visit(contraction, its number) for each plain product.
  template <class Visit>
  static void each_paired(Visit const& visit) {
    [&]<class... C>(contraction::list<C...>) {
      int number = 0;
      auto const one = [&]<class Of>(Of c) {
        if constexpr (contraction::PlainProduct<Of>) visit(c, number);
        ++number;
      };
      (..., one(C{}));
    }(contractions{});
  }

 private:
  /// The pairs of one key in the contractions before contraction `number`.
  static index_t pairs_of_keys(problem_shape const& p, int number) {
    index_t sum = 0;
    each_paired([&]<class C>(C, int n) { sum += n < number ? pairs_of(p.width_of(C::y::of)) : 0; });
    return sum;
  }
};

}  // namespace attune::exec_cpu
