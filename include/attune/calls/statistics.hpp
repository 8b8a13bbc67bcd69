// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   rows = forward_and_save(cpu{}, op, in, {.out = O});
//       s = statistics(cpu{}, op, in, rows, {.columns = true, .above = 0.1})
#pragma once

#include <attune/calls/gradients.hpp>
#include <attune/exec/statistics.hpp>

namespace attune {

/// Statistics of logits and weights (exec/statistics.hpp), in host memory. Fused: nothing of size Lq x Lk exists.
/// `saved` is the result of forward_and_save for the same operator and inputs. Merged states of an operator with an
/// O(1) state work too. `keys` restricts rows and columns to the keys [first, last), with the weights that they have
/// among all keys. `merge` combines such parts.
/// Degenerate rows: exec/statistics.hpp.
/// Errors:      attune::error names the argument, the value and the expectation.
/// Complexity:  the score products of forward(), no products with values; memory for the result, and with columns Lk
///              numbers per task, of which there are at most 64 or one per head. On Thrust: 2 D flops per visible pair,
///              once for the rows and once for the columns.
/// Determinism: bitwise the same for any number of threads.
template <Executor Exec, class Op>
row_statistics<detail::number_of<Exec>> statistics(Exec const& exec, Op const& op,
                                                   inputs<Op, typename Exec::view> const& in,
                                                   detail::saved_of<Exec, Op> const& saved,
                                                   statistics_request const& request, key_interval keys) {
  using T = detail::number_of<Exec>;
  row_statistics<T> to;
  if constexpr (detail::offered<call_kind::statistics, Exec, Op>()) {
    problem_shape const p = detail::checked_statistics<T>(op, in, saved, request, keys, detail::memory_of<Exec>());
    to = row_statistics<T>(p, request);
    statistics_of_rows(typename Exec::engine{}, exec, op, in, p, saved, request, keys, to);
  }
  return to;
}

/// The same over all keys.
template <Executor Exec, class Op>
row_statistics<detail::number_of<Exec>> statistics(Exec const& exec, Op const& op,
                                                   inputs<Op, typename Exec::view> const& in,
                                                   detail::saved_of<Exec, Op> const& saved,
                                                   statistics_request const& request = {}) {
  return statistics(exec, op, in, saved, request, {0, in.v.extents().position});
}

}  // namespace attune
