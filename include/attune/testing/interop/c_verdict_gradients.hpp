// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(verdict_gradients, run_verdict_gradients<make_mine>)
//
// Verdicts on gradients for other languages, as a separate library: c_abi.h, attune_verdict.
#pragma once

#include <vector>

#include <attune/interop/c_reference.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/interop/judged.hpp>

namespace attune::interop {

/// attune_companion::run of verdicts on gradients. More: attune_verdict.
template <class Make>
int run_verdict_gradients(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& given = *static_cast<attune_verdict const*>(more);
    certify::storage const stored = storage_of_type(given.stored);
    testing::gradient_candidate theirs;
    auto const read = [&](testing::gradient_name const& name, attune_tensor const& from, std::int32_t type) {
      auto const x = view<double const>(name.text(), from);
      if (!x.absent()) theirs.with(name, x, storage_of_type(type));
    };
    std::size_t n = 0;
    for_each_field([&]<field F>() {
      if constexpr (bound_call<Make>::op_type::uses(F)) read(F, given.gradients[n++], given.stored);
    });
    n = 0;
    for (operator_parameter const& p : listed_parameters(call.op))
      read(testing::gradient_name(p.path()), given.parameters[n++], given.numbers);
    n = 0;
    for (operator_table const& t : listed_tables(call.op))
      read(testing::gradient_name(t.path()), given.tables[n++], given.numbers);
    std::vector<std::vector<double> const*> all;
    for (auto const& [f, x] : theirs.all()) {
      testing::require_format(f.text(), x.values, x.stored);
      all.push_back(&x.values);
    }
    send(given, stored, all,
         testing::gradient_verdict(call.op, inputs_of_any(call), cotangents_of_any(call, given.cotangents), theirs,
                                   options_of(given, stored)));
  });
}

}  // namespace attune::interop
