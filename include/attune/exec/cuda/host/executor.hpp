// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(testing::emulated_cuda<bfloat16>{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// The executor `cuda` on emulated warps: the same calls, with tensors of the host. For tests without a GPU.
#pragma once

#include <span>

#include <attune/calls/forward.hpp>
#include <attune/calls/gradients.hpp>
#include <attune/exec/cuda/host/vjp.hpp>

namespace attune {
template <class T>
struct reference;
}

namespace attune::testing {

/// Finds the functions that compute rows.
struct emulated_engine {};

/// `cuda` on emulated warps, one after the other. Views, parameters, tables and mask arrays point to memory of the
/// host.
/// Errors and shapes are as on a device; results differ by the rounding of the device's approximate functions.
template <class E = bfloat16, class Widths = exec_cuda::default_widths>
struct emulated_cuda {
  using value_type = E;                                    ///< element type of the tensors
  using view = tensor<E const>;                            ///< read-only view of an input
  using engine = emulated_engine;                          ///< where its rows are computed
  using instead = reference<double>;                       ///< what offers more
  static constexpr bool reads_saved_rows = true;           ///< vjp() needs forward_and_save()
  static constexpr call_table offers = exec_cuda::offers;  ///< the calls
  void* stream = nullptr;                                  ///< not read
  void* workspace = nullptr;                               ///< memory of workspace_bytes(); null: its own
  std::size_t bytes = 0;                                   ///< size of `workspace`
};

namespace detail {
/// Runs a call in the executor's workspace, or in memory of the call.
template <class Exec, class Run>
void run_in_memory(char const* function, Exec const& exec, Run const& run) {
  if (exec.workspace == nullptr) return run_in_own_memory(run);
  exec_cuda::arena memory;
  run(memory);
  exec_cuda::require_workspace(function, exec.bytes, memory.needed());
  memory = {static_cast<unsigned char*>(exec.workspace)};
  run(memory);
}
}  // namespace detail

/// Bytes of workspace that forward() and forward_and_save() need for these arguments.
template <class E, class Widths, class Op>
std::size_t workspace_bytes(emulated_cuda<E, Widths> const&, Op const& op, inputs<Op, tensor<E const>> const& in,
                            outputs<Op, E> const& out) {
  problem_shape const p = attune::detail::checked_problem("forward", op, in, out.out.extents());
  exec_cuda::arena count;
  host_runner runner;
  exec_cuda::run_forward<host_runner, Op, E>(Widths{}, runner, count, op, in, out, p);
  return count.needed();
}
/// Bytes of workspace that vjp() needs for these arguments, with saved rows.
template <class E, class Widths, class Op>
std::size_t workspace_bytes(emulated_cuda<E, Widths> const&, Op const& op, inputs<Op, tensor<E const>> const& in,
                            std::span<float const>, cotangents<Op, tensor<E const>> const& d,
                            gradient_outputs<Op, E> const& to) {
  problem_shape const p = attune::detail::checked_inputs("vjp", op, in);
  auto const wanted = attune::detail::views_of(to, op, in);
  exec_cuda::check_wanted(op, wanted);
  exec_cuda::arena count;
  emulated_gradient_runner<host_blocks> runner;
  exec_cuda::run_vjp<decltype(runner), Op, E>(Widths{}, runner, count, op, in, p, {}, exec_cuda::cotangents_of(d),
                                              wanted);
  return count.needed();
}
/// There is nothing to load: checks the arguments of forward().
template <class E, class Widths, class Op>
void prepare(emulated_cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
             outputs<Op, E> const& out) {
  static_cast<void>(workspace_bytes(exec, op, in, out));
}
/// The same for vjp().
template <class E, class Widths, class Op>
void prepare(emulated_cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
             std::span<float const> saved, cotangents<Op, tensor<E const>> const& d,
             gradient_outputs<Op, E> const& to) {
  static_cast<void>(workspace_bytes(exec, op, in, saved, d, to));
}

/// forward(), as `cuda` runs it.
template <class E, class Widths, class Op>
void forward_rows(emulated_engine, emulated_cuda<E, Widths> const& exec, Op const& op,
                  inputs<Op, tensor<E const>> const& in, problem_shape const& p, outputs<Op, E> const& out,
                  attune::detail::heads_served const&) {
  detail::run_in_memory("forward", exec, [&](exec_cuda::arena& memory) {
    host_runner runner;
    exec_cuda::run_forward<host_runner, Op, E>(Widths{}, runner, memory, op, in, out, p);
  });
}
/// forward_and_save(), as `cuda` runs it.
template <class E, class Widths, class Op, class Rows>
void save_rows(emulated_engine, emulated_cuda<E, Widths> const& exec, Op const& op,
               inputs<Op, tensor<E const>> const& in, problem_shape const& p, outputs<Op, E> const* out,
               Rows const& rows, attune::detail::heads_served const&) {
  detail::run_in_memory("forward_and_save", exec, [&](exec_cuda::arena& memory) {
    host_runner runner;
    exec_cuda::run_forward<host_runner, Op, E>(Widths{}, runner, memory, op, in, *out, p, exec_cuda::arrays_of(rows));
  });
}
/// vjp(), as `cuda` runs it.
template <class E, class Widths, class Op, class Saved>
void vjp_rows(emulated_engine, emulated_cuda<E, Widths> const& exec, Op const& op,
              inputs<Op, tensor<E const>> const& in, problem_shape const& p, Saved const& saved,
              cotangents<Op, tensor<E const>> const& d, exec_cuda::requested_gradients<E> const& to,
              attune::detail::heads_served const&) {
  exec_cuda::check_wanted(op, to);
  detail::run_in_memory("vjp", exec, [&](exec_cuda::arena& memory) {
    emulated_gradient_runner<host_blocks> runner;
    exec_cuda::run_vjp<decltype(runner), Op, E>(Widths{}, runner, memory, op, in, p, exec_cuda::numbers_of(saved),
                                                exec_cuda::cotangents_of(d), to);
  });
}

}  // namespace attune::testing
