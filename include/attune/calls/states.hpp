// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(cpu{}, op, inputs, {first, last})
#pragma once

#include <attune/calls/composite.hpp>
#include <attune/calls/executor.hpp>
#include <attune/exec/states.hpp>

namespace attune {

namespace detail {
/// The result of accumulate().
template <class Exec, class Op>
struct states_by {
  using type = states_of<number_of<Exec>, Op>;
};
template <class Exec, Fold Op>
struct states_by<Exec, Op> {
  using type = states_of<number_of<Exec>, only_operator<Op>>;
};
template <class Exec, class... Ops>
struct states_by<Exec, mixture_operator<Ops...>> {
  struct type {};  ///< mixtures have none
};
}  // namespace detail

/// The states of all rows over the keys [keys.first, keys.last) only. Tensors and mask belong to the whole problem, so
/// that K counts all visible keys. Merge the parts in any order, then call `finish`. The states of a fold of one
/// operator are the states of its operator, with all heads.
template <Executor Exec, class Op>
typename detail::states_by<Exec, Op>::type accumulate(Exec const& exec, Op const& op,
                                                      inputs<Op, typename Exec::view> const& in, key_interval keys) {
  if constexpr (!detail::offered<call_kind::accumulate, Exec, Op>()) {
    return {};
  } else if constexpr (Fold<Op>) {
    detail::require_one_operator<Op>();
    detail::checked_fold("accumulate", op, in, detail::folded_shape("accumulate", in), detail::memory_of<Exec>());
    return accumulate(exec, std::get<0>(op.operators), detail::narrowed<detail::only_operator<Op>>(in), keys);
  } else {
    problem_shape const p = detail::checked_inputs("accumulate", op, in, detail::memory_of<Exec>());
    detail::require_interval("accumulate", keys, p);
    states_of<detail::number_of<Exec>, Op> all(op, p);
    accumulate_rows(typename Exec::engine{}, exec, op, in, p, keys, all);
    return all;
  }
}

}  // namespace attune
