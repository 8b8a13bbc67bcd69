// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu_bf16_products{}      cpu_bf16_products<Arch, float>{}      cpu_bf16_products<Arch, bfloat16, amx_tiles>{}
//
// The executor whose dot products are products of pairs of bf16 numbers.
#pragma once

#include <type_traits>

#include <attune/exec/cpu/executor.hpp>
#include <attune/exec/cpu/products/pairs.hpp>

namespace attune {

/// forward(), forward_and_save(), vjp() and decode() with dot products of bf16 numbers and sums in fp32: half the
/// multiplications. You opt in by naming this executor; its error bound is wider.
/// T:     the type of the tensors. bfloat16, or float for all but decode(): q, k, v and the gradient by out are then
///        rounded to bf16 when they are read, which is not part of the bounds below.
/// Unit:  bf16_instructions: AVX-512 BF16 (Zen 4 and later, Cooper Lake, Sapphire Rapids and later), or BFDOT and
///        BFMMLA of ARM (BF16 of ARMv8.6; not decode()). It needs -mavx512bf16, -march=armv8.2-a+bf16, or a -march
///        that has them, and does not compile without. bf16_emulated: the bits of AVX-512 on any machine with vectors
///        of that length (of forward(): on any machine), slower than cpu<T>; not decode(). bfdot_emulated: the same
///        for BFDOT and BFMMLA.
///        amx_tiles, amx_emulated: tiles of AMX, and their twin (exec/cpu/bf16/tiles.hpp); not decode(). On Intel's
///        processors with AMX take these: calls by their VDPBF16PS are slower than cpu<float>.
/// Products of features:         of q and k, gate_q and gate_k, position_q and position_k. Distances, elementwise
///                               kernels and dot products with a metric, a bias or a rotary turn are computed in float.
/// Products of weights, values:  weights (and values after a value gate) are rounded to bf16; sums in fp32. Masses (and
///                               lse, ground weight) are sums of unrounded weights. Rows of self-adjusted attention
///                               keep the products in float, and so does a uniform share.
/// Products of vjp():            these again, and the gradients of values, queries and keys: weights, gradients by
///                               contractions and the gradient by out (after an output gate) are rounded to bf16.
/// Not offered: candidate sets, scores, gates and biases given for each pair, folds, mixtures, jvp(), accumulate() and
///              statistics(): they do not compile, and the message says what to use.
/// Bound:       the bound of float arithmetic, + 2^-8 sum w |v| before `out` is rounded. Subnormal numbers of these
///              tensors count as 0, and so do subnormal weights. Sums lose up to 2^-126 at each term: see
///              docs/reference/error_bounds.md.
/// Gradients:   within gradient_error_bound(op, in, d, {storage::fp32, storage::fp32, storage::bf16}); a gate of values
///              or outputs adds to it.
/// Determinism: bitwise the same for any number of threads, any strides and, in forward(), any batch.
template <class Arch = xsimd::default_arch, class T = bfloat16, class Unit = bf16_instructions>
struct cpu_bf16_products : cpu_threads {
  static_assert(std::is_same_v<T, bfloat16> || std::is_same_v<T, float>,
                "attune: cpu_bf16_products<Arch, T> reads tensors of attune::bfloat16 or float");
  using value_type = T;                           ///< element type of the tensors
  using arch = Arch;                              ///< instruction set
  using view = tensor<T const>;                   ///< read-only view of an input
  using engine = exec_cpu::engine;                ///< where its rows are computed
  using instead = cpu<float, Arch>;               ///< what offers more
  static constexpr bool reads_saved_rows = true;  ///< vjp() takes the result of forward_and_save()
  /// The calls. decode() multiplies bf16 tensors by instructions of AVX-512 alone.
  static constexpr call_table offers = [] {
    constexpr offer single =
        without(every_operator, &offer::folds, &offer::mixtures, &offer::candidate_sets, &offer::pair_inputs);
    call_table x;
    x.forward = x.forward_and_save = x.vjp = single;
    if (std::is_same_v<T, bfloat16>) x.results = result_place::memory;
    if (std::is_same_v<T, bfloat16> && std::is_same_v<Unit, bf16_instructions> && !exec_cpu::bfdot_vectors<Arch>)
      x.decode = x.paged_decode = without(single, &offer::ordered_sums, &offer::value_gates);
    return x;
  }();

  using cpu_threads::cpu_threads;
  constexpr cpu_bf16_products() = default;
  constexpr explicit cpu_bf16_products(cpu<T, Arch> const& like) : cpu_threads(like) {}  ///< runs on its threads
};
cpu_bf16_products(int) -> cpu_bf16_products<>;

namespace exec_cpu {

/// Whether this code may use the unit; if not, fails to compile with a readable message.
template <class Arch, class Unit>
constexpr bool require_bf16_products() {
  constexpr bool there = Unit::there && Unit::template of_vectors<Arch>;
  static_assert(
      there,
      "attune: cpu_bf16_products multiplies by instructions of AVX-512 BF16 or of ARM BF16, which this file is not "
      "compiled for: add -mavx512bf16 (on ARM -march=armv8.2-a+bf16; for amx_tiles -march=sapphirerapids), or "
      "-march=native on a machine that has them, or use cpu<bfloat16>");
  return there;
}

template <class Arch, class Unit>
cpu_bf16_products<Arch, float, Unit> float_executor(engine, cpu_bf16_products<Arch, bfloat16, Unit> const& exec) {
  return cpu_bf16_products<Arch, float, Unit>(cpu_like<float>(exec));
}

}  // namespace exec_cpu
}  // namespace attune
