// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   a block of keys:  contract -> ordered sums -> interpolated rows -> logits
//
// Every pass over the keys of a tile does this with a block. Hooks that compute numbers of contractions stand here, and
// nowhere else in the forward pass. The same is true of hooks that add to value sums: pair_values.
#pragma once

#include <attune/exec/cpu/row/interpolated_rows.hpp>
#include <attune/exec/cpu/row/logits.hpp>
#include <attune/exec/cpu/row/ordered_sums.hpp>
#include <attune/exec/cpu/row/slots.hpp>
#include <attune/exec/cpu/row/value_term.hpp>
#include <attune/exec/cpu/row/weight_gate.hpp>

namespace attune::exec_cpu {

/// The numbers that the rows of a tile carry from block to block.
template <class T, class Arch, class Op>
struct row_pass {
  /// Computes the numbers of all contractions of a block, each in its buffer.
  template <class Memory>
  void numbers(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
               std::uint64_t const* bits, Memory const& memory) {
    contract_all(tile, in, s, memory);
    ordered.fill(tile, memory.pairs, s, bits);
    if constexpr (has_interpolated_rows<Op>) read_rows<typename Memory::products>(tile, memory.pairs, s.n);
  }
  /// Then computes the logits, in place of the first contraction.
  template <class Memory>
  void logits(tile_rows<T, Arch, Op> const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s,
              std::uint64_t const* bits, Memory const& memory, logit_extremes<T, Arch>& e) {
    numbers(tile, in, s, bits, memory);
    all_logits(tile, memory.pairs, s, bits, e);
  }

  [[no_unique_address]] ordered_sums<T, Arch, Op> ordered;
};

/// The same in the backward pass, and its way back: the gradients of these numbers pass to their sources.
template <class T, class Arch, class Op>
class gradient_pass {
  static constexpr int parameters = slots_of<Op>::logit;
  static constexpr index_t buffer = tile_types<T, Arch, Op>::pair_buffer;

 public:
  using tile_memory = ordered_tile_memory<T, Arch, Op>;
  struct block_memory : ordered_block_memory<T, Arch, Op, parameters>, interpolated_block_memory<T, Arch, Op> {
    explicit block_memory(arena<T>& from)
        : ordered_block_memory<T, Arch, Op, parameters>(from), interpolated_block_memory<T, Arch, Op>(from) {}
  };
  /// Whether all blocks must be prepared, in the order of the sums, before the first block of the backward pass, which
  /// then takes them in the opposite order.
  static constexpr bool prepares = has_ordered_sums<Op>;

  explicit gradient_pass(tile_memory const& memory) : ordered_(memory) {}
  /// Before the first block.
  void start(tile_rows<T, Arch, Op> const& rows, gradient_part<T> const& part) { ordered_.start(rows, part); }
  template <class Memory>
  void prepare(tile_rows<T, Arch, Op> const& rows, inputs<Op, tensor<T const>> const& in, seen_block const& s,
               std::uint64_t const* bits, Memory const& memory) {
    ordered_.prepare(rows, in, s, bits, memory);
  }
  /// Computes the numbers of all contractions of a block. Tile: gradient_tile.
  template <class Tile, class Memory>
  void numbers(Tile const& tile, inputs<Op, tensor<T const>> const& in, seen_block const& s, std::uint64_t const* bits,
               Memory const& memory) {
    contract_all(tile.rows, in, s, memory);
    ordered_.fill(
        tile.rows, [&]<class D>(int v) { return moving_row<D>(tile.facts[v], 0, parameters, 1); }, memory.pairs, s,
        bits, memory.slopes);
    if constexpr (has_interpolated_rows<Op>)
      read_rows_and_slopes<typename Memory::products>(tile.rows, memory.pairs, s.n, memory.read);
  }
  /// Passes their gradients, in the same buffers, to the sums and the rows behind them.
  template <class Tile, class Memory>
  void pull(Tile& tile, index_t n, Memory const& memory) {
    [[maybe_unused]] T const* read = memory.read;
    if constexpr (has_interpolated_rows<Op>)
      tile.each_pull([&](auto c, auto const&, auto const& t, auto number) {
        if constexpr (contraction::is_interpolated<decltype(c)>) {
          pull_read_rows<T, Arch>(memory.pairs + number * buffer, memory.pairs + index_buffer<T, Arch, Op>(number),
                                  read, n, tile.rows.p->positions, t.grown.entries);
          read += 2 * buffer;
        }
      });
    ordered_.pull(memory.pairs, n, memory.slopes, tile.by_logit_parameter);
  }
  /// At the end of a pass that computes the sums of parts alone: gives them.
  void give(tile_rows<T, Arch, Op> const& rows, gradient_part<T> const& part) const {
    if constexpr (prepares) ordered_.give(rows, part);
  }

 private:
  [[no_unique_address]] ordered_gradients<T, Arch, Op, parameters> ordered_;
};

/// The same with tangents.
template <class T, class Arch, class Op>
class moving_pass {
 public:
  /// Computes the ordered sums and interpolated rows of a block, and their tangents, from the contractions and theirs.
  /// Tile: directional_tile.
  template <class Tile, class Moving>
  void numbers(Tile const& tile, Moving const& moving, T* pairs, T* tangents, seen_block const& s,
               std::uint64_t const* bits) {
    ordered_.fill(moving, pairs, tangents, s, bits);
    if constexpr (has_interpolated_rows<Op>)
      tile.each_push([&](auto c, auto const&, auto const& packed, auto const& own, auto n) {
        if constexpr (contraction::is_interpolated<decltype(c)>) {
          index_t const to = n * tile_types<T, Arch, Op>::pair_buffer, at = index_buffer<T, Arch, Op>(n);
          read_moving_rows<T, Arch>(packed.entries, own.entries, tile.rows().p->positions, pairs + at, tangents + at,
                                    pairs + to, tangents + to, s.n);
        }
      });
  }

 private:
  [[no_unique_address]] moving_sums<T, Arch, Op> ordered_;
};

/// The numbers that pairs add to the value sums of a tile besides the values of the keys, in every pass. Does nothing
/// for operators without such a hook. weights: [key][query], 0 where a query does not see the key.
template <class T, class Arch, class Op>
struct pair_values {
  using tile = tile_view<T, Arch, Op>;

  /// sum[d][query] += sum over the keys of a block of weight times the numbers of the pair.
  static void add(tile const& t, key_block_place const& keys, T const* weights, T* sum) {
    if constexpr (Op::has_value_term)
      add_term<T, Arch>(t.op->value_term, t.op->value_term.vectors, t.place(), keys, weights, sum);
  }
  /// The same with tangents.
  static void add_moving(tile const& t, moving_call<T, Op> const& c, seen_block const& s, T const* weights,
                         T const* tangents, T* sum, T* sum_along) {
    if constexpr (Op::has_value_term) {
      key_block_place const keys{s.first, s.n};
      add(t, keys, weights, sum);
      add(t, keys, tangents, sum_along);
      if (table const* const along = c.table_of(t.op->value_term.vectors))
        add_term<T, Arch>(t.op->value_term, *along, t.place(), keys, weights, sum_along);
    }
  }
  /// value + number d of the pair of lane l and key j.
  static T with(tile const& t, T const& value, index_t l, index_t j, index_t d) {
    if constexpr (Op::has_value_term)
      return value +
             T(t.op->value_term.vectors(t.b, t.h, attune::detail::row_of_term(*t.op, *t.p, t.b, t.query(l), j), d));
    else
      return value;
  }
  /// gain[key][query] += <do, numbers of the pair>. d_out: do as [d][query].
  static void add_gains(tile const& t, key_block_place const& keys, T const* d_out, T* gain) {
    if constexpr (Op::has_value_term)
      add_gains_of_term<T, Arch>(t.op->value_term, t.op->value_term.vectors, t.place(), keys, d_out, gain);
  }
  /// Adds the gradients of these numbers.
  static void pull(tile const& t, key_block_place const& keys, T const* weights, T const* d_out,
                   gradient_sinks<T> const& to) {
    if constexpr (Op::has_value_term)
      pull_term<T, Arch>(t.op->value_term, t.place(), keys, weights, d_out, to.sum_of(t.op->value_term.vectors));
  }
  /// In decode: the same as `add`. weights: [row][key]; sum: [row][step]. seen[r]: a bit for each key that row r sees.
  static void add_decoded(Op const& op, decode_place const& at, key_block_place const& keys, T const* weights,
                          std::uint64_t const* seen, T* sum, index_t step) {
    if constexpr (Op::has_value_term) add_decode_term<T, Arch>(op.value_term, at, keys, weights, seen, sum, step);
  }
};

}  // namespace attune::exec_cpu
