// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// forward_and_save() and vjp() of cpu_bf16_products. Products of pairs of bf16 numbers: the scores again, <do, v>, and
// the gradients of values, keys and queries. Everything else of a tile is float.
#pragma once

#include <attune/exec/cpu/bf16/forward.hpp>
#include <attune/exec/cpu/bf16/tiles.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/gradients/bf16/products.hpp>

namespace attune::exec_cpu {

template <class Arch, class Unit, class Op, class Saved>
void save_rows(engine, cpu_bf16_products<Arch, float, Unit> const& exec, Op const& op,
               inputs<Op, tensor<float const>> const& in, problem_shape const& p, outputs<Op, float> const* out,
               Saved& rows, attune::detail::heads_served const&) {
  if constexpr (require_bf16_products<Arch, Unit>()) {
    Unit::enter(out != nullptr ? "forward_and_save" : "vjp");
    outputs<Op, float> const nowhere{.out = {}};
    stored_run<tensor<float const>, float, Arch, Op, pair_tile<Arch, Op, Unit>> const run(
        cpu_like<float>(exec), op, in, p, out != nullptr ? *out : nowhere);
    run.stream([&](auto& tile, auto const& memory) {
      if (out != nullptr) run.finish(tile, memory);
      keep_rows<Op>(tile, rows, out != nullptr);
    });
  }
}

template <class Arch, class Unit, class Op>
void vjp_rows(engine, cpu_bf16_products<Arch, float, Unit> const& exec, Op const& op,
              inputs<Op, tensor<float const>> const& in, problem_shape const& p,
              attune::detail::saved_view<float const, Op> const& saved, cotangents<Op, tensor<float const>> const& d,
              attune::detail::gradient_views<float> const& to, attune::detail::heads_served const& serves) {
  if constexpr (require_bf16_products<Arch, Unit>()) {
    Unit::enter("vjp");
    fused_vjp<pair_products<Unit>>(cpu_like<float>(exec), op, in, p, saved, d, serves, to);
  }
}

}  // namespace attune::exec_cpu
