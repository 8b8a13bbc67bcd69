// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cpu_bf16_products{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// The forward pass with products of pairs of bf16 numbers. Everything else of a tile is float.
#pragma once

#include <attune/exec/cpu/bf16/executor.hpp>
#include <attune/exec/cpu/bf16/products.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/exec/cpu/tile/stored.hpp>

namespace attune {

/// The forward pass with dot products of bf16. See cpu_bf16_products for the bound and forward(cpu) for everything
/// else.
template <class Arch, class T, class Unit, class Op>
void forward(cpu_bf16_products<Arch, T, Unit> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
             outputs<Op, T> const& out) {
  if constexpr (exec_cpu::require_bf16_products<Arch, Unit, Op>()) {
    problem_shape const p = detail::checked_problem("forward", op, in, out.out.extents());
    detail::check_outputs("forward", out, p);
    Unit::enter("forward");
    exec_cpu::stored_run<tensor<T const>, T, Arch, Op, exec_cpu::pair_tile<Arch, Op, Unit>>(
        exec_cpu::of_floats(exec_cpu::of_tensors(exec)), op, in, p, out)();
  }
}

}  // namespace attune
