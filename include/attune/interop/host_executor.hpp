// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   with_executor<bfloat16, Unit, Op>(c, [&](auto const& exec) { forward(exec, op, in, out); })
//
// The CPU executor of a call through the C interface. It is cpu<T>, or cpu_bf16_products where this code and the
// processor have instructions for products of bf16.
#pragma once

#include <type_traits>

#include <attune/calls/executor.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/interop/c_abi.h>

namespace attune::interop {

/// Products in float, whatever the machine.
struct no_unit {};

/// The unit that multiplies bf16 in calls through the C interface: tiles of AMX, or AVX-512 BF16. Code for an Intel
/// processor with AVX-512 BF16 and without AMX is rare (Cooper Lake), and slower than float products there.
using unit_of_machine =
    std::conditional_t<!bf16_instructions::of_vectors<xsimd::default_arch>, no_unit,
                       std::conditional_t<amx_tiles::there, amx_tiles,
                                          std::conditional_t<exec_cpu::multiplies_bf16, bf16_instructions, no_unit>>>;

/// Whether an operator can be computed by products of bf16 in all calls that gradients need.
template <class Unit, class Op>
inline constexpr bool takes_products = [] {
  using exec = cpu_bf16_products<xsimd::default_arch, bfloat16, Unit>;
  return offers_call<exec, call_kind::forward, Op> && offers_call<exec, call_kind::forward_and_save, Op> &&
         offers_call<exec, call_kind::vjp, Op>;
}();
template <class Op>
inline constexpr bool takes_products<no_unit, Op> = false;

/// Calls f with the executor of a call of T. A call that saves rows and the call that reads them have the same.
template <class T, class Unit, class Op, class F>
void with_executor(attune_call const& c, F const& f) {
  if constexpr (std::is_same_v<T, bfloat16> && takes_products<Unit, Op>)
    if (c.products == attune_products_of_machine && Unit::lent())
      return f(cpu_bf16_products<xsimd::default_arch, bfloat16, Unit>(c.threads));
  f(cpu<T>(c.threads));
}

}  // namespace attune::interop
