// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(cpu_bf16_products<Arch, float>{}, op, in, {.out = O});
//   g = vjp(cpu_bf16_products<Arch, float>{}, op, in, rows, {.out = dO});
//
// Gradients with products of pairs of bf16 numbers: the scores again, <do, v>, and the gradients of values, keys and
// queries. Everything else of a tile is float.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include <attune/exec/cpu/bf16/forward.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/gradients/bf16/products.hpp>
#include <attune/exec/cpu/gradients/stored.hpp>

namespace attune {

namespace exec_cpu {

/// The forward pass of float tensors by products of pairs. on_tile(run, tile, memory of a block) receives each tile;
/// `run` writes its rows by run.finish(tile, memory).
template <class Arch, class Unit, class Op, class OnTile>
void stream_pairs(cpu<float, Arch> const& exec, Op const& op, inputs<Op, tensor<float const>> const& in,
                  problem_shape const& p, outputs<Op, float> const& out, OnTile const& on_tile) {
  stored_run<tensor<float const>, float, Arch, Op, pair_tile<Arch, Op, Unit>> const run(exec, op, in, p, out);
  run.stream([&](auto& tile, auto const& memory) { on_tile(run, tile, memory); });
}
/// forward(), which saves its rows.
template <class Arch, class Unit, class Op, class Saved>
void forward_of_pairs(cpu<float, Arch> const& exec, Op const& op, inputs<Op, tensor<float const>> const& in,
                      problem_shape const& p, outputs<Op, float> const& out, Saved& rows) {
  stream_pairs<Arch, Unit>(exec, op, in, p, out, [&](auto const& run, auto& tile, auto const& memory) {
    run.finish(tile, memory);
    save_rows<Op>(tile, rows, true);
  });
}
/// The saved rows, without outputs.
template <class Arch, class Unit, class Op>
saved_rows<float, Op> rows_of_pairs(cpu<float, Arch> const& exec, Op const& op,
                                    inputs<Op, tensor<float const>> const& in, problem_shape const& p) {
  saved_rows<float, Op> saved(op, p);
  outputs<Op, float> const none{.out = {}};
  stream_pairs<Arch, Unit>(exec, op, in, p, none,
                           [&](auto const&, auto& tile, auto const&) { save_rows<Op>(tile, saved, false); });
  return saved;
}

}  // namespace exec_cpu

/// forward(), which also returns what vjp() needs. See cpu_bf16_products for the bound and forward_and_save(cpu) for
/// everything else.
template <class Arch, class Unit, class Op>
saved_rows<float, Op> forward_and_save(cpu_bf16_products<Arch, float, Unit> exec, Op const& op,
                                       inputs<Op, tensor<float const>> const& in, outputs<Op, float> const& out) {
  saved_rows<float, Op> all;
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("forward_and_save", op, in, out.out.extents());
    Unit::enter("forward_and_save");
    detail::check_outputs("forward_and_save", out, p);
    all = {op, p};
    exec_cpu::forward_of_pairs<Arch, Unit>(exec_cpu::of_tensors(exec), op, in, p, out, all);
  }
  return all;
}
/// The same, in the caller's memory of saved_size(op, in) numbers.
template <class Arch, class Unit, class Op>
void forward_and_save(cpu_bf16_products<Arch, float, Unit> exec, Op const& op,
                      inputs<Op, tensor<float const>> const& in, outputs<Op, float> const& out,
                      std::span<float> memory) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("forward_and_save", op, in, out.out.extents());
    Unit::enter("forward_and_save");
    detail::check_outputs("forward_and_save", out, p);
    auto rows = detail::rows_in<Op>("forward_and_save", memory, p);
    std::fill(memory.begin(), memory.end(), 0.0f);
    exec_cpu::forward_of_pairs<Arch, Unit>(exec_cpu::of_tensors(exec), op, in, p, out, rows);
  }
}
/// The same for bf16 tensors.
/// Memory: copies of all inputs as floats while it runs.
template <class Arch, class Unit, class Op>
void forward_and_save(cpu_bf16_products<Arch, bfloat16, Unit> exec, Op const& op,
                      inputs<Op, tensor<bfloat16 const>> const& in, outputs<Op, bfloat16> const& out,
                      std::span<float> memory) {
  exec_cpu::save_of_copies(op, in, out, [&](auto const& wide, auto const& results) {
    forward_and_save(exec_cpu::of_float_tensors(exec), op, wide, results, memory);
  });
}

/// Gradients with products of bf16. See cpu_bf16_products for the bound and vjp(cpu) for everything else.
/// Determinism: bitwise the same for any number of threads and any strides.
template <class Arch, class Unit, class Op>
dense_gradients<float> vjp(cpu_bf16_products<Arch, float, Unit> exec, Op const& op,
                           inputs<Op, tensor<float const>> const& in, saved_rows<float, Op> const& saved,
                           cotangents<Op, tensor<float const>> const& d, dense_gradients<float> memory = {}) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
    Unit::enter("vjp");
    return exec_cpu::fused_vjp<exec_cpu::pair_products<Unit>>(
        exec_cpu::of_tensors(exec), op, in, p, saved, d, [](index_t) { return true; }, std::move(memory));
  } else {
    return {};
  }
}
/// Overload that runs the forward pass itself.
template <class Arch, class Unit, class Op>
dense_gradients<float> vjp(cpu_bf16_products<Arch, float, Unit> exec, Op const& op,
                           inputs<Op, tensor<float const>> const& in, cotangents<Op, tensor<float const>> const& d) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
    Unit::enter("vjp");
    return vjp(exec, op, in, exec_cpu::rows_of_pairs<Arch, Unit>(exec_cpu::of_tensors(exec), op, in, p), d);
  } else {
    return {};
  }
}

/// The same gradients, of the tensors that `to` names, in the caller's memory. `saved`: the numbers that
/// forward_and_save() wrote to the caller's memory.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, float, Unit> exec, Op const& op, inputs<Op, tensor<float const>> const& in,
         std::span<float const> saved, cotangents<Op, tensor<float const>> const& d,
         gradient_outputs<Op, float> const& to) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
    Unit::enter("vjp");
    exec_cpu::fused_vjp<exec_cpu::pair_products<Unit>>(
        exec_cpu::of_tensors(exec), op, in, p, detail::rows_in<Op>("vjp", saved, p), d, [](index_t) { return true; },
        detail::views_of(to, op, in));
  }
}
/// The same, from rows that forward_and_save() returned.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, float, Unit> exec, Op const& op, inputs<Op, tensor<float const>> const& in,
         saved_rows<float, Op> const& saved, cotangents<Op, tensor<float const>> const& d,
         gradient_outputs<Op, float> const& to) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
    Unit::enter("vjp");
    exec_cpu::fused_vjp<exec_cpu::pair_products<Unit>>(
        exec_cpu::of_tensors(exec), op, in, p, detail::view_of<float, Op>(saved), d, [](index_t) { return true; },
        detail::views_of(to, op, in));
  }
}
/// Overload that runs the forward pass itself.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, float, Unit> exec, Op const& op, inputs<Op, tensor<float const>> const& in,
         cotangents<Op, tensor<float const>> const& d, gradient_outputs<Op, float> const& to) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("vjp", op, in, detail::output_shape(in));
    Unit::enter("vjp");
    vjp(exec, op, in, exec_cpu::rows_of_pairs<Arch, Unit>(exec_cpu::of_tensors(exec), op, in, p), d, to);
  }
}

/// Gradients of bf16 tensors, rounded once. Gradients by parameters and tables, and cotangents of outputs with one
/// number per row, are floats. `saved`: the numbers from forward_and_save().
/// Memory: copies of all inputs and requested gradients as floats while it runs.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, bfloat16, Unit> exec, Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
         std::span<float const> saved, cotangents<Op, tensor<bfloat16 const>> const& d,
         gradient_outputs<Op, bfloat16> const& to) {
  exec_cpu::vjp_of_copies(op, in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
    vjp(exec_cpu::of_float_tensors(exec), op, wide, saved, by, results);
  });
}
/// Overload that runs the forward pass itself.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, bfloat16, Unit> exec, Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
         cotangents<Op, tensor<bfloat16 const>> const& d, gradient_outputs<Op, bfloat16> const& to) {
  exec_cpu::vjp_of_copies(op, in, d, to, [&](auto const& wide, auto const& by, auto const& results) {
    vjp(exec_cpu::of_float_tensors(exec), op, wide, by, results);
  });
}

/// Overload that says what bf16 tensors need: gradients in the caller's memory.
template <class Arch, class Unit, class Op>
void vjp(cpu_bf16_products<Arch, bfloat16, Unit>, Op const&, inputs<Op, tensor<bfloat16 const>> const&,
         cotangents<Op, tensor<bfloat16 const>> const&) {
  static_assert(!std::is_same_v<Arch, Arch>,
                "attune: vjp() of bf16 tensors writes to the caller's memory: vjp(exec, op, in, d, gradient_outputs)");
}

}  // namespace attune
