// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(verdict, run_verdict<make_mine>)
//
// Verdicts on outputs for other languages, as a separate library: c_abi.h, attune_verdict.
#pragma once

#include <attune/interop/c_reference.hpp>
#include <attune/testing/interop/judged.hpp>
#include <attune/testing/verdict.hpp>

namespace attune::interop {

/// attune_companion::run of verdicts. More: attune_verdict.
template <class Make>
int run_verdict(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& given = *static_cast<attune_verdict const*>(more);
    certify::storage const stored = storage_of_type(given.stored);
    testing::candidate theirs(required("out", given.outputs[0]), stored);
    if (auto const x = view<double const>("lse", given.outputs[1]); !x.absent()) {
      if (given.lse_of_base_two)
        theirs.with_base_two_lse(x, storage_of_type(given.rows));
      else
        theirs.with_lse(natural_lse<double const>(x), storage_of_type(given.rows));
    }
    if (auto const x = view<double const>("ground_weight", given.outputs[2]); !x.absent())
      theirs.with_ground_weight(x, storage_of_type(given.rows));
    testing::require_format("out", theirs.out(), stored);
    send(given, stored, {&theirs.out()},
         testing::verdict(call.op, inputs_of_any(call), theirs, options_of(given, stored)));
  });
}

}  // namespace attune::interop
