// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   testing::vjp_on_host_warps(op, inputs, saved, {.out = dO}, to)
//
// Gradients by the tiles of the executor `cuda` on emulated warps, for tests of your own policies without a GPU.
#pragma once

#include <span>

#include <attune/exec/cuda/gradients/key_tile.hpp>
#include <attune/exec/cuda/gradients/query_tile.hpp>
#include <attune/exec/cuda/gradients/run.hpp>
#include <attune/exec/cuda/host/forward.hpp>

namespace attune::testing {

/// An emulated_runner with the tiles of gradients.
template <class Blocks>
struct emulated_gradient_runner : emulated_runner<Blocks> {
  /// Every tile of keys, and every tile of queries.
  template <class Op, class E, class Queries, class Keys, bool Members>
  void gradients(exec_cuda::gradient_call<Op, E> const& call, bool queries, bool keys) {
    using lane = typename Blocks::warp;
    if (keys)
      this->template each<exec_cuda::key_gradient_tile<lane, Op, E, Keys>>(
          call, call.key_blocks(), 1, [&](index_t n, int) { return call.key_block(n); }, Keys::warps);
    if (queries)
      this->template each<exec_cuda::query_gradient_tile<lane, Op, E, Queries, Members>>(
          call, call.query_blocks(), call.shared_batches * call.shared_groups,
          [&](index_t n, int s) { return call.query_block(n, s); }, Queries::warps);
  }
};

namespace detail {
/// Checks and runs a VJP.
template <class Widths, class Runner, class E, class Op>
void run_emulated_vjp(Runner& runner, Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                      cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  problem_shape const p = attune::detail::checked_inputs("vjp", op, in);
  attune::detail::check_cotangents("vjp", d, p);
  auto const rows = attune::detail::rows_in<Op>("vjp", saved, p);
  exec_cuda::saved_numbers const arrays = exec_cuda::numbers_of(rows);
  auto const wanted = attune::detail::views_of(to, op, in);
  exec_cuda::check_wanted(op, wanted);
  auto const by = exec_cuda::cotangents_of(d);
  run_in_own_memory([&](exec_cuda::arena& memory) {
    exec_cuda::run_vjp<Runner, Op, E>(Widths{}, runner, memory, op, in, p, arrays, by, wanted);
  });
}
}  // namespace detail

/// vjp() of `cuda` on the host, from what forward_and_save_on_host_warps() saved. Views point to memory of the host.
/// Errors: as vjp(); attune::error for a gradient that the tiles do not have.
template <class Widths = exec_cuda::gradient_widths, class E, class Op>
void vjp_on_host_warps(Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const> saved,
                       cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  emulated_gradient_runner<host_blocks> runner;
  detail::run_emulated_vjp<Widths>(runner, op, in, saved, d, to);
}

}  // namespace attune::testing
