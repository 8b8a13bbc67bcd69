// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   run_on_device<Make, bfloat16>(call, text, [&](auto const& op, auto const& in, auto const& out) { ... })
//
// A forward call whose tensors lie on a device. Compile with ATTUNE_C_ON_DEVICE defined. Nothing here needs CUDA.
#pragma once

#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>

#ifndef ATTUNE_C_ON_DEVICE
#error "attune: define ATTUNE_C_ON_DEVICE for the whole file: it decides the mask policy of the operators"
#endif

namespace attune::interop {

/// Calls launch(operator, inputs, outputs) for a call of E. Pointers are not followed.
template <class Make, class E, class Launch>
int run_on_device(attune_call const* c, attune_text text, Launch const& launch) {
  static_assert(!Fold<typename bound_call<Make>::op_type>,
                "attune: cuda: a fold does not run on a device: call its operators and add their outputs");
  return guarded(text, [&] {
    if (c->type != type_code<E>)
      throw error("call", "the element type", name_of_type(c->type), name_of_type(type_code<E>));
    bound_call<Make> const call(*c);
    launch(call.op, call.template in<E>(), call.template out<E>());
  });
}

}  // namespace attune::interop
