// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward() of cpu_bf16_products: products of pairs of bf16 numbers. Everything else of a tile is float.
#pragma once

#include <attune/exec/cpu/bf16/executor.hpp>
#include <attune/exec/cpu/bf16/products.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/exec/cpu/tile/stored.hpp>

namespace attune::exec_cpu {

template <class Arch, class T, class Unit, class Op>
void forward_rows(engine, cpu_bf16_products<Arch, T, Unit> const& exec, Op const& op,
                  inputs<Op, tensor<T const>> const& in, problem_shape const& p, outputs<Op, T> const& out,
                  attune::detail::heads_served const&) {
  if constexpr (require_bf16_products<Arch, Unit>()) {
    Unit::enter("forward");
    stored_run<tensor<T const>, T, Arch, Op, pair_tile<Arch, Op, Unit>>(cpu_like<float>(exec), op, in, p, out)();
  }
}

}  // namespace attune::exec_cpu
