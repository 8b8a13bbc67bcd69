// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(reference<T>{}, op, inputs, {first, last})
#pragma once

#include <attune/calls/states.hpp>
#include <attune/exec/reference/forward.hpp>

namespace attune {

namespace detail {

/// The keys of a row are added one after the other: the streaming derivation, independent of the dense one.
template <class T, class Op>
states_of<T, Op> dense_states(Op const& op, inputs<Op, any_tensor> const& in, key_interval keys) {
  using normalizer = typename Op::normalizer_policy;
  require_mergeable<Op>();
  problem_shape const p = checked_inputs("accumulate", op, in);
  require_interval("accumulate", keys, p);
  states_of<T, Op> all(op, p);
  lift<T> const numbers{};
  reference_contraction<T, Op, any_tensor> const contract{op, in, p, numbers};
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        auto const f = op.bind(detail::scalar_row<T>(p, op.mask, b, h, i, numbers));
        index_t const v_head = p.group(h, p.value_heads);
        auto const value_of = [&](index_t j) {
          return [&, j, gate = gate_of_key(contract, f, b, h, i, j)](index_t d) {
            return gate(detail::value_of_pair(contract, f, b, h, i, v_head, j, d));
          };
        };
        if constexpr (Op::has_threshold) {
          detail::for_each_visible(contract, f, b, h, i, keys, [&](index_t j, T const&, T const& a) {
            all.add(b, h, i, a, j, value_of(j));
            all.poison(b, h, i, nan_carrier(a));
          });
          all.prune(std::size_t(all.at(b, h, i)));
        } else {
          auto state = row_state<T>::template empty<normalizer>(f.normalizer, p.value_width);
          detail::for_each_visible(contract, f, b, h, i, keys, [&](index_t j, T const&, T const& a) {
            state.template accumulate<normalizer>(f.normalizer, a, value_of(j));
          });
          all.store(all.at(b, h, i), state);
        }
      }
  return all;
}

}  // namespace detail

/// The states of all rows over the keys [keys.first, keys.last), in any scalar. The states of a fold of one operator
/// are the states of its operator, with all heads.
template <class T, class Op>
typename detail::states_by<reference<T>, Op>::type accumulate(reference<T> exec, Op const& op,
                                                              inputs<Op, any_tensor> const& in, key_interval keys) {
  if constexpr (Fold<Op>) {
    detail::require_one_operator<Op>();
    detail::checked_fold("accumulate", op, in, detail::folded_shape("accumulate", in));
    return accumulate(exec, std::get<0>(op.operators), detail::narrowed<detail::only_operator<Op>>(in), keys);
  } else {
    return detail::dense_states<T>(op, in, keys);
  }
}

}  // namespace attune
