// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   decode(cpu{}, fold(inner, {1.0, minus_lambda}), inputs, outputs)
#pragma once

#include <vector>

#include <attune/exec/cpu/decode/paged.hpp>
#include <attune/exec/cpu/decode/stored.hpp>
#include <attune/exec/cpu/tile/fold.hpp>

namespace attune {

/// decode() of each operator of a fold; then adds the terms with their coefficients. Every operator must be decodable.
/// Memory: also the outputs of all terms.
template <class T, class Arch, Fold Op>
  requires(!storage_only<T>)
void decode(cpu<T, Arch> exec, Op const& folded, inputs<Op, tensor<T const>> const& in, outputs<Op, T> const& out) {
  std::vector<T> memory;
  exec_cpu::fold_forward("decode", exec, folded, in, out.out, memory,
                         [&](auto const& op, auto const& own, auto const& to, index_t) { decode(exec, op, own, to); });
}

}  // namespace attune
