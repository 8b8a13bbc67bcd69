// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(cpu{}, op, inputs, {first, last})
#pragma once

#include <attune/exec/cpu/stream.hpp>
#include <attune/exec/states.hpp>

namespace attune {

/// The states of all rows over the keys [keys.first, keys.last) only. Tensors and mask are those of the whole problem, so
/// that K counts all visible keys. Merge the parts in any order, then `finish`.
template <class T, class Arch, class Op>
row_states<T> accumulate(cpu<T, Arch> exec, Op const& op, inputs<Op, tensor<T const>> const& in, key_interval keys) {
  problem_shape const p = detail::checked_problem("accumulate", op, in, detail::output_shape(in));
  detail::require_interval("accumulate", keys, p);
  row_states<T> all(p);
  exec_cpu::stream(exec, op, in, p, keys, [&](auto const& tile, index_t b, index_t h) {
    tile.states([&](index_t i, T reference, T earned, T ground, auto const& value) {
      index_t const n = all.at(b, h, i);
      auto const u = std::size_t(n);
      all.reference[u] = reference;
      all.earned[u] = earned;
      all.ground[u] = ground;
      for (index_t d = 0; d < p.value_width; ++d) all.acc[std::size_t(n * p.value_width + d)] = value(d);
    });
  });
  return all;
}

}  // namespace attune
