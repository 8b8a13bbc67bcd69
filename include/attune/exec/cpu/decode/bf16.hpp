// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() of cpu_bf16_products: decode(cpu<bfloat16>{}, ...) with half the multiplications and with its own error
// bound, since weights are rounded to bf16 before they are multiplied by the values.
#pragma once

#include <attune/exec/cpu/bf16/executor.hpp>
#include <attune/exec/cpu/decode/bf16_products.hpp>
#include <attune/exec/cpu/decode/stored.hpp>

namespace attune::exec_cpu {

template <class Arch, class Op, class Cache>
void decode_rows(engine, cpu_bf16_products<Arch> const& exec, Op const& op, Cache const& cache, problem_shape const& p,
                 outputs<Op, bfloat16> const& out) {
  if constexpr (require_bf16_products<Arch, bf16_instructions>())
    decode_stored<bf16_products>(cpu_like<bfloat16>(exec), op, cache, p, out);
}

}  // namespace attune::exec_cpu
