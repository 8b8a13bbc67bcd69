// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu_bf16_products{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// decode(cpu<bfloat16>{}, ...) with half the multiplications and with its own error bound: weights are rounded to bf16
// before they are multiplied by the values.
#pragma once

#include <attune/exec/cpu/bf16/executor.hpp>
#include <attune/exec/cpu/decode/bf16_products.hpp>
#include <attune/exec/cpu/decode/paged.hpp>

namespace attune {

namespace exec_cpu {

/// Whether decode() may multiply by instructions; if not, fails to compile with a readable message.
template <class Arch>
constexpr bool require_bf16_decode() {
  static_assert(!bfdot_vectors<Arch>,
                "attune: decode() by products of bf16 has the instructions of AVX-512 alone, not those of ARM: use "
                "decode(cpu<bfloat16>{}, ...)");
  if constexpr (bfdot_vectors<Arch>)
    return false;
  else
    return require_bf16_products<Arch, bf16_instructions>();
}

}  // namespace exec_cpu

/// See cpu_bf16_products.
template <class Arch, class Op>
void decode(cpu_bf16_products<Arch> exec, Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
            outputs<Op, bfloat16> const& out) {
  exec_cpu::require_decodable<Op>();
  if constexpr (exec_cpu::require_bf16_decode<Arch>()) {
    problem_shape const p = detail::checked_problem("decode", op, in, out.out.extents());
    detail::check_outputs("decode", out, p);
    exec_cpu::decode_stored<exec_cpu::bf16_products>(exec_cpu::of_tensors(exec), op,
                                                     exec_cpu::contiguous_keys<Op, bfloat16>(in), p, out);
  }
}

/// From a cache in pages (exec/cpu/decode/paged.hpp). Bitwise the same as from one piece if pages hold a multiple of 64
/// keys.
template <class Arch, class Op>
void decode(cpu_bf16_products<Arch> exec, Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
            page_table const& pages, outputs<Op, bfloat16> const& out) {
  exec_cpu::require_decodable<Op>();
  if constexpr (exec_cpu::require_bf16_decode<Arch>())
    exec_cpu::decode_pages(op, in, pages, out, [&](auto const& keys, problem_shape const& p) {
      exec_cpu::decode_stored<exec_cpu::bf16_products>(exec_cpu::of_tensors(exec), op, keys, p, out);
    });
}

/// Overloads that say what decode() by products of bf16 reads and multiplies by.
template <class Arch, class T, class Unit, class Op>
void decode(cpu_bf16_products<Arch, T, Unit>, Op const&, inputs<Op, tensor<T const>> const&, outputs<Op, T> const&) {
  static_assert(!std::is_same_v<Arch, Arch>,
                "attune: decode() by products of bf16 reads bf16 tensors and multiplies by bf16_instructions: use "
                "decode(cpu_bf16_products{}, ...), or decode(cpu<T>{}, ...)");
}
template <class Arch, class T, class Unit, class Op>
void decode(cpu_bf16_products<Arch, T, Unit> exec, Op const& op, inputs<Op, tensor<T const>> const& in,
            page_table const&, outputs<Op, T> const& out) {
  decode(exec, op, in, out);
}

template <class Arch, class T, class Unit, class Op>
void accumulate(cpu_bf16_products<Arch, T, Unit>, Op const&, inputs<Op, tensor<T const>> const&, key_interval) {
  exec_cpu::refuse_bf16_products<Arch>();
}

}  // namespace attune
