// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ATTUNE_C_MAKE(mine, attention(kernel::dot_product{}, normalizer::softmax{}, m))
//   ATTUNE_C_COMPANION(probes, run_probes<make_mine>)
//
// Probes of an operator for other languages, as a separate library: c_abi.h, attune_probes.
#pragma once

#include <optional>

#include <attune/interop/bound_call.hpp>
#include <attune/interop/c_library.hpp>
#include <attune/testing/probes.hpp>

namespace attune::interop {

/// attune_companion::run of probes. More: attune_probes.
template <class Make>
int run_probes(attune_call const* c, void const* more, attune_text text) {
  return guarded(text, [&] {
    bound_call<Make> const call(*c);
    auto const& of = *static_cast<attune_probes const*>(more);
    testing::problem_extents e;
    e.batch = of.batch, e.heads = of.heads, e.key_heads = of.key_heads, e.value_heads = of.value_heads;
    e.queries = of.queries, e.keys = of.keys, e.axes = of.axes, e.width = of.width, e.value_width = of.value_width;
    e.gate_width = of.gate_width, e.position_width = of.position_width;
    if (c->has_offset) e.offset = index_t(c->offset);
    for (auto const& one : testing::probe_pack(call.op, e, std::uint64_t(of.seed), true)) {
      auto const send = [&](char const* name, testing::detail::drawn_tensor const& x) {
        strides const s = strides::dense(x.extents);
        attune_tensor const as_c{const_cast<double*>(x.doubles.data()),
                                 {x.extents.batch, x.extents.head, x.extents.position, x.extents.feature},
                                 {s.batch, s.head, s.position, s.feature},
                                 attune_float64,
                                 1};
        of.receive(one->name.c_str(), one->reveals.c_str(), name, &as_c);
      };
      using op_type = typename bound_call<Make>::op_type;
      for_each_field([&]<field F>() {
        if constexpr (op_type::uses(F)) send(name_of(F), one->problem.of(F));
      });
      send("dout", one->problem.by_out());
      if (op_type::has_lse) send("dlse", one->problem.by_lse());
      if (op_type::has_ground_weight) send("dground_weight", one->problem.by_ground_weight());
    }
  });
}

}  // namespace attune::interop
