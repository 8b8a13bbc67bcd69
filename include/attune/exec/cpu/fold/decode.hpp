// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu{}, fold(inner, {1.0, minus_lambda}), inputs, outputs)
#pragma once

#include <tuple>
#include <vector>

#include <attune/exec/cpu/decode/paged.hpp>
#include <attune/exec/cpu/decode/stored.hpp>
#include <attune/exec/cpu/fold/forward.hpp>

namespace attune {

namespace exec_cpu {
/// A fold is decodable if its operators are.
template <std::size_t N, class... Ops>
inline constexpr bool decodable<fold_operator<N, Ops...>> = (decodable<Ops> && ...);
}  // namespace exec_cpu

/// decode() of each operator of a fold; then adds the terms with their coefficients. Every operator must be decodable.
/// Memory: also the outputs of all terms.
template <class T, class Arch, Fold Op>
  requires(!storage_only<T>)
void decode(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  std::vector<T> memory;
  exec_cpu::fold_forward("decode", exec, folded, in, out.out, memory,
                         [&](auto const& op, auto const& own, auto const& to, index_t) { decode(exec, op, own, to); });
}
/// The same for 16-bit tensors. Terms and their sum are floats, and `out` is rounded once.
template <storage_only S, class Arch, Fold Op>
void decode(cpu<S, Arch> exec, Op const& folded, inputs<Op, tensor<S const>> const& in, outputs<Op, S> const& out) {
  std::vector<float> memory;
  exec_cpu::fold_forward("decode", exec, folded, in, out.out, memory,
                         [&]<class Part>(Part const& op, auto const& own, outputs<Part, float> const& to, index_t) {
                           exec_cpu::require_decodable<Part>();
                           problem_shape const p = detail::checked_problem("decode", op, own, to.out.extents());
                           exec_cpu::decode_widened(exec, op, exec_cpu::contiguous_keys<Part, S>(own), p, to);
                         });
}

/// The same from a cache in pages (exec/cpu/decode/paged.hpp), 16-bit tensors included.
template <class T, class Arch, Fold Op>
void decode(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in, page_table const& pages,
            outputs<Op, T> const& out) {
  std::vector<arithmetic_t<T>> memory;
  exec_cpu::fold_forward(
      "decode", exec, folded, in, out.out, memory,
      [&]<class Part>(Part const& op, auto const& own, outputs<Part, arithmetic_t<T>> const& to, index_t) {
        exec_cpu::require_decodable<Part>();
        exec_cpu::decode_pages(op, own, pages, to, [&](auto const& keys, problem_shape const& p) {
          if constexpr (storage_only<T>)
            exec_cpu::decode_widened(exec, op, keys, p, to);
          else
            exec_cpu::decode(exec, op, keys, p, to);
        });
      });
}

}  // namespace attune
