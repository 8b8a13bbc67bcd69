// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   vjp(cuda{stream}, op, inputs, saved, {.out = dO}, gradients)
//
// The backward pass of the executor `cuda`. For nvcc.
#pragma once

#include <span>

#include <attune/exec/cuda/executor.hpp>
#include <attune/exec/cuda/gradients/kernels.cuh>
#include <attune/exec/cuda/gradients/run.hpp>

namespace attune {

namespace exec_cuda {

/// A runner with the tiles of gradients.
template <class Runner>
struct gradient_runner : Runner {
  template <class Op, class E, class Queries, class Keys, bool Members>
  void gradients(gradient_call<Op, E> const& call, bool queries, bool keys) {
    require_gradient_memory<Op, E, Queries, Keys>(shared_memory_of_device());
    constexpr int of_queries = query_gradient_memory<Op, E>::template of<Queries>::bytes,
                  of_keys = key_gradient_memory<Op, E>::template of<Keys>::bytes;
    index_t const query_blocks = queries ? call.query_blocks() : 0, key_blocks = keys ? call.key_blocks() : 0;
    if constexpr (one_launch<Queries, Keys>) {
      if (queries || keys)
        this->blocks(gradient_kernel<Op, E, Queries, Keys, Members>, key_blocks + query_blocks, Keys::threads,
                     of_queries > of_keys ? of_queries : of_keys, call, unsigned(key_blocks));
    } else {
      if (keys) this->blocks(key_gradient_kernel<Op, E, Keys>, key_blocks, Keys::threads, of_keys, call);
      if (queries)
        this->blocks(query_gradient_kernel<Op, E, Queries, Members>, query_blocks, Queries::threads, of_queries, call);
    }
  }
};

/// A call of vjp() whose arguments are checked.
template <class Op, class E>
struct vjp_arguments {
  Op const& op;
  inputs<Op, tensor<E const>> const& in;
  problem_shape p;
  saved_numbers saved;
  row_cotangents<E> d;
  requested_gradients<E> const& to;
};
/// Runs a VJP, or counts its memory.
template <class Widths, class Op, class E, class Runner>
void run_vjp(Runner& runner, arena& memory, vjp_arguments<Op, E> const& x) {
  run_vjp<Runner, Op, E>(Widths{}, runner, memory, x.op, x.in, x.p, x.saved, x.d, x.to);
}
/// The same after a forward pass, whose saved rows and output lie in the call's memory.
template <class Widths, class Op, class E, class Forward, class Runner>
void run_both_passes(Forward& forward, Runner& runner, arena& memory, vjp_arguments<Op, E> x) {
  problem_shape const& p = x.p;
  std::span<float> const rows(memory.take<float>(attune::detail::saved_size<float, Op>(p)),
                              std::size_t(attune::detail::saved_size<float, Op>(p)));
  E* const out = memory.take<E>(p.batch * p.heads * p.queries * p.value_width);
  auto const saved = attune::detail::rows_in<Op>("vjp", rows, p);
  arena of_forward = memory;
  run_forward<Forward, Op, E>(Widths{}, forward, of_forward, x.op, x.in,
                              outputs<Op, E>{.out = tensor<E>(out, {p.batch, p.heads, p.queries, p.value_width})}, p,
                              arrays_of(saved));
  x.saved = numbers_of(saved);
  run_vjp<Widths>(runner, memory, x);  // in the same memory: the forward pass is over
  if (memory.used < of_forward.used) memory.used = of_forward.used;
}

template <class Op, class E>
vjp_arguments<Op, E> checked_vjp_arguments(Op const& op, inputs<Op, tensor<E const>> const& in,
                                           cotangents<Op, tensor<E const>> const& d, requested_gradients<E> const& to) {
  problem_shape const p = attune::detail::checked_inputs("vjp", op, in, memory_kind::device);
  attune::detail::check_cotangents("vjp", d, p);
  check_wanted(op, to);
  return {op, in, p, {}, cotangents_of(d), to};
}
template <class E, class Op>
requested_gradients<E> views_on_device(Op const& op, inputs<Op, tensor<E const>> const& in,
                                       gradient_outputs<Op, E> const& to) {
  return attune::detail::views_of(to, op, in, memory_kind::device);
}

/// vjp() from saved rows, in the order of the executor's stream; returns before it is done. Errors are thrown before
/// anything is launched, or CUDA reports them.
/// Memory:      workspace_bytes(): some 150 bytes a row; copies of what is turned or scaled; in floats, gradients that
///              are sums of several. A float for each pair of a bias that is shared and of a table of distances, and
///              lists of tiles; nothing else grows with Lq x Lk.
/// Determinism: the same bits on every run and for any number of processors: no two blocks share a sum.
template <class E, class Widths, class Op, class Rows>
void vjp_rows(engine, cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
              problem_shape const& p, Rows const& saved, cotangents<Op, tensor<E const>> const& d,
              requested_gradients<E> const& to, attune::detail::heads_served const&) {
  check_wanted(op, to);
  device_of_stream const device(exec.stream);
  gradient_runner<stream_runner> runner{{exec.stream}};
  vjp_arguments<Op, E> const all{op, in, p, numbers_of(saved), cotangents_of(d), to};
  with_workspace("vjp", exec, [&](arena& memory) { run_vjp<Widths>(runner, memory, all); });
}
/// vjp() that runs the forward pass itself. Its memory holds the saved rows and the output too.
template <class E, class Widths, class Op>
void vjp_without_rows(engine, cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
                      cotangents<Op, tensor<E const>> const& d, requested_gradients<E> const& to) {
  auto const all = checked_vjp_arguments(op, in, d, to);
  device_of_stream const device(exec.stream);
  forward_runner<stream_runner> forward{{exec.stream}};
  gradient_runner<stream_runner> runner{{exec.stream}};
  with_workspace("vjp", exec, [&](arena& memory) { run_both_passes<Widths>(forward, runner, memory, all); });
}

}  // namespace exec_cuda

/// Bytes of workspace that vjp() needs for these arguments, with saved rows.
template <class E, class Widths, class Op>
std::size_t workspace_bytes(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
                            std::span<float const>, cotangents<Op, tensor<E const>> const& d,
                            gradient_outputs<Op, E> const& to) {
  auto const views = exec_cuda::views_on_device(op, in, to);
  exec_cuda::arena count;
  exec_cuda::gradient_runner<exec_cuda::stream_runner> runner{{exec.stream}};
  exec_cuda::run_vjp<Widths>(runner, count, exec_cuda::checked_vjp_arguments(op, in, d, views));
  return count.needed();
}
/// The same for the call that runs the forward pass itself.
template <class E, class Widths, class Op>
std::size_t workspace_bytes(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
                            cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  auto const views = exec_cuda::views_on_device(op, in, to);
  exec_cuda::arena count;
  exec_cuda::forward_runner<exec_cuda::stream_runner> forward{{exec.stream}};
  exec_cuda::gradient_runner<exec_cuda::stream_runner> runner{{exec.stream}};
  exec_cuda::run_both_passes<Widths>(forward, runner, count, exec_cuda::checked_vjp_arguments(op, in, d, views));
  return count.needed();
}

/// Loads the kernels of vjp() for these arguments, and launches nothing: call it before a capture.
template <class E, class Widths, class Op>
void prepare(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in, std::span<float const>,
             cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  auto const views = exec_cuda::views_on_device(op, in, to);
  exec_cuda::device_of_stream const device(exec.stream);
  exec_cuda::arena none;
  exec_cuda::gradient_runner<exec_cuda::loading_runner> runner;
  exec_cuda::run_vjp<Widths>(runner, none, exec_cuda::checked_vjp_arguments(op, in, d, views));
}
/// The same for the call that runs the forward pass itself.
template <class E, class Widths, class Op>
void prepare(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
             cotangents<Op, tensor<E const>> const& d, gradient_outputs<Op, E> const& to) {
  auto const views = exec_cuda::views_on_device(op, in, to);
  exec_cuda::device_of_stream const device(exec.stream);
  exec_cuda::arena none;
  exec_cuda::forward_runner<exec_cuda::loading_runner> forward;
  exec_cuda::gradient_runner<exec_cuda::loading_runner> runner;
  exec_cuda::run_both_passes<Widths>(forward, runner, none, exec_cuda::checked_vjp_arguments(op, in, d, views));
}

}  // namespace attune
