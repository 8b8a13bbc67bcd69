// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu<bfloat16>{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// Tensors of fewer bits for the float tiles. A block of keys is widened once for all tiles of a task, query rows once
// per tile. Rows of the output are narrowed when they are written. Everything between is bitwise the float path.
#pragma once

#include <attune/calls/forward.hpp>
#include <attune/exec/cpu/products/widened.hpp>
#include <attune/exec/cpu/tile/stream.hpp>

namespace attune {

namespace exec_cpu {

/// A tile with memory for its inputs and outputs as floats.
template <class Tile, class Op>
struct stored_tile : Tile {
  using Tile::Tile;
  static constexpr bool keeps_keys = Op::has_threshold;  ///< reads the values of all keys at its end

  static index_t rows_of(problem_shape const& p, field f) {
    if (side_of(f) == input_side::query) return Tile::queries;
    return reads_late(f) ? p.keys : Tile::block;
  }
  static constexpr bool reads_late(field f) { return keeps_keys && (f == field::v || f == field::value_gate); }
  static index_t room(problem_shape const& p, field f) { return padded<float>(rows_of(p, f) * p.width_of(f)); }
  static index_t rooms(problem_shape const& p, input_side side) {
    index_t sum = 0;
    for_each_field([&]<field F>() {
      if constexpr (Op::uses(F))
        if (side_of(F) == side) sum += room(p, F);
    });
    return sum;
  }
  struct tile_memory : Tile::tile_memory {
    float* queries;
    tile_memory(arena<float>& from, problem_shape const& p)
        : Tile::tile_memory(from, p), queries(from.take(rooms(p, input_side::query))) {}
  };
  struct block_memory : Tile::block_memory {
    float *keys, *output, *gate;
    block_memory(arena<float>& from, problem_shape const& p)
        : Tile::block_memory(from, p), keys(from.take(rooms(p, input_side::key))),
          output(from.take(Tile::queries * p.value_width)), gate(from.take(Tile::queries * p.output_gate_width)) {}
  };
};

/// Streams an operator over views of fewer bits, with outputs of T. For every view that `widened` and `unread` accept.
template <class View, class T, class Arch, class Op, class Tile = row_tile<float, Arch, Op>>
class stored_run {
  using tile = stored_tile<Tile, Op>;
  using view = tensor<float const>;
  using wide_inputs = inputs<Op, view>;

 public:
  stored_run(cpu<float, Arch> exec, Op const& op, inputs<Op, View> const& in, problem_shape const& p,
             outputs<Op, T> const& out)
      : exec_(exec), fixed_(op), in_(in), p_(p), out_(out) {
    if constexpr (Op::uses(field::v0)) {
      shape const e = in.v0.extents();
      for (index_t b = 0; b < e.batch; ++b)
        for (index_t h = 0; h < e.head; ++h)
          for (index_t i = 0; i < e.position; ++i)
            for (index_t d = 0; d < e.feature; ++d) ground_.push_back(float(in.v0(b, h, i, d)));
    }
  }

  /// Runs the forward pass.
  void operator()() const {
    stream([&](tile& t, auto const& memory) { finish(t, memory); });
  }
  /// Streams all keys. on_tile(tile, memory of a block) receives each tile, whose rows `finish` then writes.
  template <class OnTile>
  void stream(OnTile const& on_tile) const {
    stream_tiles<tile>(
        exec_, p_, {0, p_.keys}, [](index_t) { return true; },
        [&](index_t b, index_t h, index_t first, auto const& memory) {
          wide_inputs const in = widen([](field f) { return side_of(f) == input_side::query; }, memory.queries, b, h,
                                       first, tile::queries);
          return tile(fixed_.op, in, p_, b, h, first, memory);
        },
        [&](std::vector<tile>& tiles, index_t b, index_t h, index_t first, index_t last, auto const& memory) {
          auto const now = [](field f) {
            return side_of(f) == input_side::key && !tile::reads_late(f) && Tile::block_memory::reads_floats(f);
          };
          wide_inputs const in = widen(now, memory.keys, b, h, first, last - first);
          if constexpr (!tile::reads_late(field::v))
            gate_values<float, Arch>(fixed_.op, in, p_, b, h, first, last - first, memory.gated);
          if constexpr (Tile::block_memory::products::of_pairs)  // bf16/products.hpp
            memory.pack(in_, p_, tile_place{&p_, b, h, 0}, first, last);
          accumulate_block<Op>(tiles, in_, in, p_, b, h, first, last, p_.keys, memory);
        },
        on_tile);
  }
  /// Writes the rows of a tile to the outputs.
  void finish(tile& t, typename tile::block_memory const& memory) const {
    index_t const b = t.place().b, h = t.place().h, first = t.place().first;
    wide_inputs in = widen([](field f) { return f == field::output_gate; }, memory.gate, b, h, first, t.rows());
    if constexpr (tile::reads_late(field::v)) {
      wide_inputs const values = widen(tile::reads_late, memory.keys, b, h, 0, p_.keys);
      in.v = values.v;
      if constexpr (Op::has_value_gate) in.value_gate = values.value_gate;
    }
    if constexpr (Op::uses(field::v0)) in.v0 = view(ground_.data(), in_.v0.extents());
    if constexpr (std::is_same_v<T, float>) {
      t.finish(in, out_, memory);
    } else {
      finish_narrow(t, in, memory);
    }
  }

 private:
  /// Inputs: fields for which `wanted(field)` is true have the rows [first, first + n), the others have extents only.
  template <class Wanted>
  wide_inputs widen(Wanted const& wanted, float* to, index_t b, index_t h, index_t first, index_t n) const {
    return make_inputs<Op, view>(
        [&]<field F>() {
          auto const& given = member<F>(in_);
          if (!wanted(F)) return unread(given);
          auto const x = F == field::value_gate ? attune::detail::spread_over(given, in_.v.extents())
                         : shares_rows(F)       ? attune::detail::spread_over(given, p_.rows(1))
                                                : given;
          float* const rows = to;
          to += tile::room(p_, F);
          index_t const head = side_of(F) == input_side::query ? h : p_.group(h, p_.heads_of(F));
          return widened(rows, x, b, head, head, first, n);
        },
        in_.offset, in_.offsets);
  }
  void finish_narrow(tile& t, wide_inputs const& in, typename tile::block_memory const& memory) const {
    index_t const b = t.place().b, h = t.place().h, first = t.place().first, width = p_.value_width;
    float* const rows = memory.output;
    outputs<Op, float> wide{.out = {rows - first * width, out_.out.extents(), {0, 0, width, 1}}};
    if constexpr (Op::has_lse) wide.lse = out_.lse;
    if constexpr (Op::has_ground_weight) wide.ground_weight = out_.ground_weight;
    if constexpr (Op::has_threshold) wide.threshold = out_.threshold;
    t.finish(in, wide, memory);
    index_t const step = out_.out.steps().feature;
    for (index_t l = 0; l < t.rows(); ++l) {
      T* const row = out_.out.row(b, h, first + l);
      if (step == 1)
        attune::detail::narrow(rows + l * width, row, width);
      else
        for (index_t d = 0; d < width; ++d) row[d * step] = T(rows[l * width + d]);
    }
  }

  cpu<float, Arch> exec_;
  attune::detail::materialized<Op, float> fixed_;
  inputs<Op, View> const& in_;
  problem_shape const& p_;
  outputs<Op, T> const& out_;
  std::vector<float> ground_;
};

/// The rows of 16-bit tensors; `out` is T, rounded once, or float. Bitwise the float path for the widened inputs.
template <storage_only S, class Arch, class Op, class T>
void forward_rows(engine, cpu<S, Arch> const& exec, Op const& op, inputs<Op, tensor<S const>> const& in,
                  problem_shape const& p, outputs<Op, T> const& out, attune::detail::heads_served const&) {
  stored_run<tensor<S const>, T, Arch, Op>(cpu_like<float>(exec), op, in, p, out)();
}

}  // namespace exec_cpu
}  // namespace attune
