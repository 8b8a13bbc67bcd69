// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   run_on_device<Make, cuda<bfloat16>>(call, more, text)     vjp_on_device<Make, cuda<bfloat16>>(call, more, text)
//
// Calls whose tensors lie on a device, for any executor with a stream and a workspace. Compile with ATTUNE_C_ON_DEVICE
// defined. Nothing here needs CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <attune/calls/forward.hpp>
#include <attune/calls/gradients.hpp>
#include <attune/exec/saved.hpp>
#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>
#include <attune/interop/c_results.hpp>

#ifndef ATTUNE_C_ON_DEVICE
#error "attune: define ATTUNE_C_ON_DEVICE for the whole file: it decides the mask policy of the operators"
#endif

namespace attune::interop {

/// Calls f(call, executor, inputs) for a call of the executor's element type. Pointers are not followed.
template <class Make, class Exec, class F>
int with_device_call(attune_call const* c, attune_cuda const& more, attune_text text, F const& f) {
  static_assert(!Fold<typename bound_call<Make>::op_type>,
                "attune: cuda: a fold does not run on a device: call its operators and add their outputs");
  using E = typename Exec::value_type;
  return guarded(text, [&] {
    if (c->type != type_code<E>)
      throw error("call", "the element type", name_of_type(c->type), name_of_type(type_code<E>));
    bound_call<Make> const call(*c);
    Exec const exec{static_cast<decltype(Exec::stream)>(more.stream), more.workspace, std::size_t(more.bytes)};
    f(call, exec, call.template in<E>());
  });
}
/// Writes what a call needs: bytes of workspace, and saved numbers.
template <class Op, class View>
void write_needed(attune_cuda const& more, std::size_t bytes, Op const& op, inputs<Op, View> const& in) {
  more.needed[0] = std::int64_t(bytes);
  more.needed[1] =
      attune::detail::saved_size<float, Op>(attune::detail::checked_inputs("saved_size", op, in, memory_kind::device));
}
/// The exception for an unknown step.
inline error unknown_step(attune_cuda const& more) {
  return error("call", "the step", attune::detail::text("the value ", more.step), "one of attune_cuda_step");
}

/// attune_companion::run of forward() and forward_and_save(). More: attune_cuda.
template <class Make, class Exec>
int run_on_device(attune_call const* c, void const* more, attune_text text) {
  auto const& to = *static_cast<attune_cuda const*>(more);
  return with_device_call<Make, Exec>(c, to, text, [&](auto const& call, Exec const& exec, auto const& in) {
    auto const out = call.template out<typename Exec::value_type>();
    switch (to.step) {
      case attune_cuda_run:
        if (to.saved)
          return forward_and_save(exec, call.op, in, out,
                                  std::span(static_cast<float*>(to.saved), std::size_t(to.saved_count)));
        return forward(exec, call.op, in, out);
      case attune_cuda_measure:
        return write_needed(to, workspace_bytes(exec, call.op, in, out), call.op, in);
      case attune_cuda_prepare:
        return prepare(exec, call.op, in, out);
      default:
        throw unknown_step(to);
    }
  });
}
/// attune_companion::run of vjp(). More: attune_cuda.
template <class Make, class Exec>
int vjp_on_device(attune_call const* c, void const* more, attune_text text) {
  auto const& from = *static_cast<attune_cuda const*>(more);
  return with_device_call<Make, Exec>(c, from, text, [&](auto const& call, Exec const& exec, auto const& in) {
    using E = typename Exec::value_type;
    auto const d = call.template cotangents_by<tensor<E const>>(
        from.gradients->cotangents,
        [](std::string_view name, attune_tensor const& x) { return view<E const>(name, x); },
        [](std::string_view name, attune_tensor const& x) { return view<arithmetic_t<E> const>(name, x); });
    auto const to = gradient_outputs_of<typename bound_call<Make>::op_type, E>(*from.gradients);
    std::span const saved(static_cast<float const*>(from.saved), std::size_t(from.saved_count));
    switch (from.step) {
      case attune_cuda_run:
        return vjp(exec, call.op, in, saved, d, to);
      case attune_cuda_measure:
        return write_needed(from, workspace_bytes(exec, call.op, in, saved, d, to), call.op, in);
      case attune_cuda_prepare:
        return prepare(exec, call.op, in, saved, d, to);
      default:
        throw unknown_step(from);
    }
  });
}

}  // namespace attune::interop
