// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu_bf16_products{}, op, {.q = Q, .k = K, .v = V}, {.out = O})
//
// decode(cpu<bfloat16>{}, ...) with half the multiplications and with its own error bound: weights are rounded to bf16
// before they are multiplied by the values.
#pragma once

#include <type_traits>

#include <attune/exec/cpu/decode/bf16_products.hpp>
#include <attune/exec/cpu/decode/paged.hpp>

namespace attune {

/// decode() on bf16 tensors with the dot products of AVX-512 BF16: Zen 4 and later, Cooper Lake, Sapphire Rapids and
/// later. You opt in by naming this executor. It needs -mavx512bf16 or a -march that has it, and does not compile
/// without.
/// Products of features:         of q and k, gate_q and gate_k, position_q and position_k as they are stored; sums in
///                               fp32. Distances, elementwise kernels and dot products with a metric or a bias are
///                               computed in float.
/// Products of weights, values:  weights are rounded to bf16; sums in fp32. Masses (and lse, ground weight) are sums of
///                               unrounded weights. Rows of self-adjusted attention keep the products in float.
/// Bound:       the bound of float arithmetic, + 2^-8 sum w |v| before `out` is rounded. Subnormal numbers of these
///              tensors count as 0, and so do subnormal weights. Sums lose up to 2^-126 at each term: see
///              docs/reference/error_bounds.md.
/// Determinism: bitwise the same for any number of threads and any strides.
template <class Arch = xsimd::default_arch>
struct cpu_bf16_products {
  using value_type = bfloat16;
  using arch = Arch;
  using view = tensor<bfloat16 const>;

  int threads = 0;
  thread_executor_ref executor = thread_pool{};

  constexpr cpu_bf16_products() = default;
  constexpr explicit cpu_bf16_products(int thread_count) : threads(thread_count) {}
  /// Runs on the threads of another executor.
  constexpr explicit cpu_bf16_products(cpu<bfloat16, Arch> const& like)
      : threads(like.threads), executor(like.executor) {}
};

namespace exec_cpu {

/// Whether vectors have 16 floats and the instructions exist; if not, fails to compile with a readable message.
template <class Arch>
constexpr bool require_bf16_products() {
  constexpr bool there = multiplies_bf16 && xsimd::batch<float, Arch>::size == 16;
  static_assert(
      there,
      "attune: cpu_bf16_products multiplies by instructions of AVX-512 BF16, which this file is not compiled for: add "
      "-mavx512bf16, or -march=native on a machine that has them, or use cpu<bfloat16>");
  return there;
}

template <class Arch>
cpu<bfloat16, Arch> of_tensors(cpu_bf16_products<Arch> const& exec) {
  cpu<bfloat16, Arch> to(exec.threads);
  to.executor = exec.executor;
  return to;
}

/// Rejects calls that have no bf16 products yet.
template <class Arch>
constexpr void refuse_bf16_products() {
  static_assert(!std::is_same_v<Arch, Arch>,
                "attune: cpu_bf16_products offers decode(); forward() wants cpu<bfloat16>, everything else cpu<float>");
}

}  // namespace exec_cpu

template <class Arch, class Op>
void decode(cpu_bf16_products<Arch> exec, Op const& op, inputs<Op, tensor<bfloat16 const>> const& in,
            outputs<Op, bfloat16> const& out) {
  exec_cpu::require_decodable<Op>();
  if constexpr (exec_cpu::require_bf16_products<Arch>()) {
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
  if constexpr (exec_cpu::require_bf16_products<Arch>())
    exec_cpu::decode_pages(op, in, pages, out, [&](auto const& keys, problem_shape const& p) {
      exec_cpu::decode_stored<exec_cpu::bf16_products>(exec_cpu::of_tensors(exec), op, keys, p, out);
    });
}

template <class Arch, class Op>
void forward(cpu_bf16_products<Arch>, Op const&, inputs<Op, tensor<bfloat16 const>> const&,
             outputs<Op, bfloat16> const&) {
  exec_cpu::refuse_bf16_products<Arch>();
}
template <class Arch, class Op>
void vjp(cpu_bf16_products<Arch>, Op const&, inputs<Op, tensor<bfloat16 const>> const&,
         cotangents<Op, tensor<bfloat16 const>> const&) {
  exec_cpu::refuse_bf16_products<Arch>();
}
template <class Arch, class Op>
void accumulate(cpu_bf16_products<Arch>, Op const&, inputs<Op, tensor<bfloat16 const>> const&, key_interval) {
  exec_cpu::refuse_bf16_products<Arch>();
}

}  // namespace attune
