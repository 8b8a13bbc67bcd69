// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward_and_save() and vjp() of the CPU executor: the rows of each task. gradients/tasks.hpp divides the rows into
// tasks and knows what tasks share.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <attune/calls/gradients.hpp>
#include <attune/exec/cpu/gradients/candidates.hpp>
#include <attune/exec/cpu/gradients/masses.hpp>
#include <attune/exec/cpu/gradients/tasks.hpp>
#include <attune/exec/cpu/tile/stream.hpp>
#include <attune/exec/materialized.hpp>

namespace attune {

namespace exec_cpu {

/// Computes the gradient_needs of an operator. adds: the gradients by keys may already hold numbers.
template <class Tile, class Op, class Call, class T>
gradient_needs needs_of(Call const& c, attune::detail::gradient_views<T> const& to, bool adds) {
  gradient_needs needs{.p = c.p, .keys = c.part.keys, .sides = {}, .shared = {}, .parameters = {}, .tables = {}};
  needs.sides.reserve(field_count);  // otherwise g++ 14 warns that a reallocation is too short
  for_each_field([&]<field F>() {
    constexpr bool for_gate = Op::has_value_gate && (F == field::v || F == field::value_gate);
    if constexpr (Op::uses(F) && side_of(F) == input_side::key)
      if (for_gate || !to.of(F).absent())
        needs.sides.push_back({F, c.p.heads_of(F), c.p.width_of(F), !(for_gate && adds)});
  });
  for (operator_parameter const& x : listed_parameters(c.op)) needs.parameters.push_back(x.at->extents());
  for (operator_table const& x : listed_tables(c.op)) needs.tables.push_back(x.at->extents());
  if constexpr (Op::uses(field::v0)) needs.ground_value = c.in.v0.extents();
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && (side_of(F) == input_side::pair || shares_rows(F))) {
      shape const e = member<F>(c.in).extents();
      bool const one_for_all = e.position == 1 && c.p.whole_queries() != 1;
      if (!to.of(F).absent() && (one_for_all || !(e == c.p.rows(e.feature)))) needs.shared.push_back(F);
    }
  });
  needs.queries_at_once = Tile::tiles_of_task * Tile::queries;
  using memory = arena<typename Tile::value_type>;
  needs.resident = Tile::tiles_of_task * memory::template size_of<typename Tile::tile_memory>(c.p);
  needs.scratch = memory::template size_of<typename Tile::block_memory>(c.p);
  needs.distance_sums = Tile::pairs;
  return needs;
}

/// The rows of one task. Products: how tiles multiply.
template <class T, class Arch, class Op, class Products = full_products>
class gradient_rows {
 public:
  using tile =
      std::conditional_t<Op::has_threshold, candidate_gradients<T, Arch, Op>, mass_gradients<T, Arch, Op, Products>>;
  explicit gradient_rows(gradient_call<T, Op> const& c) : c_(c) {}
  /// The order of the gradients. Where blocks are prepared, it is the opposite of the order in which they are.
  static constexpr contraction::key_order order = gradient_pass<T, Arch, Op>::prepares && !takes_later_keys_first<Op>
                                                      ? contraction::key_order::later
                                                      : contraction::key_order::earlier;

  void operator()(index_t b, index_t h, index_t first, index_t last, T* resident, T* scratch,
                  gradient_sinks<T>& sinks) const {
    problem_shape const& p = c_.p;
    std::vector<tile> tiles;
    auto const block = arena<T>::template in<typename tile::block_memory>(scratch, p);
    index_t const each = arena<T>::template size_of<typename tile::tile_memory>(p);
    block.start_task(c_.op, p);
    for (index_t begin = first; begin < last; begin += tile::tiles_of_task * tile::queries) {
      key_interval const hull = make_tiles(
          tiles, begin, (std::min)(begin + tile::tiles_of_task * tile::queries, last), c_.part.keys,
          [&](index_t i, index_t t) {
            return tile(c_, b, h, i, arena<T>::template in<typename tile::tile_memory>(resident + t * each, p), block);
          });
      if constexpr (gradient_pass<T, Arch, Op>::prepares)
        stream_blocks<block_grid::of_rows, contraction::opposite(order), tile::block>(
            hull, [&](index_t j, index_t end) {
              if constexpr (Products::of_pairs) block.pack_keys(c_.in, p, tile_place{&p, b, h, 0}, j, end);
              for (tile& t : tiles) t.prepare(j, end, block);
            });
      stream_blocks<block_grid::of_rows, order, tile::block>(hull, [&](index_t j, index_t end) {
        gate_values<T, Arch>(c_.op, c_.in, p, b, h, j, end - j, block.gated);
        if constexpr (Products::of_pairs) block.pack(c_.in, p, tile_place{&p, b, h, 0}, j, end);  // bf16/products.hpp
        for (tile& t : tiles) t.accumulate(j, end, block, sinks);
      });
      for (tile& t : tiles) t.finish(first, block, sinks);
    }
    if constexpr (Op::has_value_gate) value_gate(b, h, sinks);
    finish_distances(b, h, sinks);
    block.each_turned(c_.op, p, [&](auto c, auto const& owner, auto const& turned) {
      contraction_vjp<decltype(c), T, Arch>::finish(turned, p, owner, b, sinks, c_.part.keys);
    });
  }

 private:
  /// Turns the gradient of gated values, which is in the rows of the values, into the gradients of values and gates.
  void value_gate(index_t b, index_t h, gradient_sinks<T>& to) const {
    using counts = slots_of<Op>;
    using D = dual<T, 1 + counts::value_gate>;
    constexpr int first_slot = counts::of_value_gate;
    problem_shape const& p = c_.p;
    row<T> const r = attune::detail::any_query_row<T>(p, b, h);
    auto const gate = c_.op.value_gate.bind(moving_row<D>(r, first_slot, counts::value_gate, 1));
    index_t const head = p.group(h, p.value_heads);
    auto const gates = attune::detail::spread_over(c_.in.value_gate, c_.in.v.extents());
    for (index_t j = c_.part.keys.first; j < c_.part.keys.last; ++j) {
      T* const by_value = to.rows(field::v).at(j);
      T* const by_gate = to.rows(field::value_gate).at(j);
      for (index_t d = 0; d < p.value_width; ++d) {
        T const grown = by_value[d];
        if (grown == T(0)) continue;
        D const f = gate.factor(D::variable(gates(b, head, j, d), 0));
        T const gain = grown * c_.in.v(b, head, j, d);
        by_value[d] = grown * f.value;
        by_gate[d] = gain * f.tangent[0];
        for (int s = 0; s < counts::value_gate; ++s)
          to.sums->parameters[std::size_t(first_slot + s)](0, 0, 0, 0) +=
              double(attune::detail::chained(gain, f.tangent[1 + s]));
      }
    }
  }

  void finish_distances(index_t b, index_t h, gradient_sinks<T>& to) const {
    for_each_contraction(c_.op, [&](auto c, auto const& owner, auto number) {
      if constexpr (contraction::of_distance_alone<decltype(c)>)
        contraction_vjp<decltype(c), T, Arch>::finish(to.distances.data() + number * (c_.p.queries + c_.p.keys), c_.p,
                                                      owner, b, h, to);
    });
  }

  gradient_call<T, Op> const& c_;
};

/// Saves what the backward pass needs of a tile of rows that has seen all keys. `finished`: its outputs are written.
template <class Op, class Tile, class Saved>
void keep_rows(Tile& tile, Saved& to, [[maybe_unused]] bool finished) {
  if constexpr (Op::has_threshold) {
    if (!finished) tile.settle();
    tile.thresholds(to);
  } else {
    tile.states(to);
  }
}

/// Adds the gradients of a part of the rows and the keys to `to` and to `total`, for the heads that `runs` accepts.
/// Makes `total` if it is empty. `op` is materialized. `to` has no gradients by keys outside of the part.
template <class T, class Arch, class Op>
void add_gradients_of_part(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
                           problem_shape const& p, attune::detail::saved_view<T const, Op> const& saved,
                           cotangents<Op, tensor<T const>> const& d, gradient_part<T> const& part,
                           attune::detail::gradient_views<T> const& to, std::optional<shared_sums>& total,
                           std::function<bool(index_t)> const& runs) {
  gradient_call<T, Op> const call{op, in, p, saved, d, part};
  gradient_rows<T, Arch, Op> const rows_of_task(call);
  gradient_needs needs = needs_of<typename gradient_rows<T, Arch, Op>::tile, Op>(call, to, true);
  if (!total) total = blank_totals(needs, to);
  gradient_tasks<T, Arch>(exec, std::move(needs), to, *total)(runs, rows_of_task);
}

/// Writes the gradients of the heads for which `runs` is true to views that are zero. Products: how tiles multiply.
template <class Products = full_products, class T, class Arch, class Op>
void fused_vjp(cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in, problem_shape const& p,
               attune::detail::saved_view<T const, Op> const& saved, cotangents<Op, tensor<T const>> const& d,
               std::function<bool(index_t)> const& runs, attune::detail::gradient_views<T> const& to) {
  attune::detail::materialized<Op, T> const fixed(op);
  gradient_call<T, Op> const call{fixed.op, in, p, saved, d, {.keys = {0, p.keys}}};
  gradient_rows<T, Arch, Op, Products> const rows_of_task(call);
  run_gradient_tasks(exec, needs_of<typename gradient_rows<T, Arch, Op, Products>::tile, Op>(call, to, false), to, runs,
                     rows_of_task);
}
template <class T, class Arch, class Op>
void vjp_rows(engine, cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
              problem_shape const& p, attune::detail::saved_view<T const, Op> const& saved,
              cotangents<Op, tensor<T const>> const& d, attune::detail::gradient_views<T> const& to,
              attune::detail::heads_served const& serves) {
  fused_vjp(exec, op, in, p, saved, d, serves, to);
}

/// Saves the rows of the heads that `serves` accepts, and writes their outputs unless `out` is null.
template <class T, class Arch, class Op, class Saved>
void save_rows(engine, cpu<T, Arch> const& exec, Op const& op, inputs<Op, tensor<T const>> const& in,
               problem_shape const& p, outputs<Op, T> const* out, Saved& rows,
               attune::detail::heads_served const& serves) {
  stream(exec, op, in, p, {0, p.keys}, serves, [&](auto& tile, auto const& memory) {
    if (out != nullptr) tile.finish(in, *out, memory);
    keep_rows<Op>(tile, rows, out != nullptr);
  });
}

}  // namespace exec_cpu
}  // namespace attune
