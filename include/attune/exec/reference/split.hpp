// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(reference<T>{}, op, inputs, {first, last})
#pragma once

#include <attune/exec/reference/forward.hpp>
#include <attune/exec/states.hpp>

namespace attune {

/// The states of all rows over the keys [keys.first, keys.last), one key absorbed after the other: the streaming derivation
/// in any scalar, independent of the dense one.
template <class T, class Op>
row_states<T> accumulate(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, key_interval keys) {
  using normalizer = typename Op::normalizer_policy;
  problem_shape const p = detail::checked_problem("accumulate", op, in, detail::output_shape(in));
  detail::require_interval("accumulate", keys, p);
  row_states<T> all(p);
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        auto const f = op.bind(detail::scalar_row<T>(p, op.mask, b, h, i));
        auto state = row_state<T>::template empty<normalizer>(f.normalizer, p.value_width);
        index_t const v_head = p.group(h, p.value_heads);
        detail::for_each_visible<T>(op, in, p, f, b, h, i, keys, [&](index_t j, T const&, T const& a) {
          state.template absorb<normalizer>(f.normalizer, a, [&](index_t d) { return T(in.v(b, v_head, j, d)); });
        });
        all.store(all.at(b, h, i), state);
      }
  return all;
}

}  // namespace attune
