// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   states = accumulate(reference<T>{}, op, inputs, {first, last})
#pragma once

#include <attune/exec/reference/forward.hpp>
#include <attune/exec/states.hpp>

namespace attune {

/// The states of all rows over the keys [keys.first, keys.last), with the keys added one after the other. This is the
/// streaming derivation in any scalar, independent of the dense one.
template <class T, class Op>
states_of<T, Op> accumulate(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, key_interval keys) {
  using normalizer = typename Op::normalizer_policy;
  detail::require_mergeable<Op>();
  problem_shape const p = detail::checked_problem("accumulate", op, in, detail::output_shape(in));
  detail::require_interval("accumulate", keys, p);
  states_of<T, Op> all(op, p);
  lift<T> const numbers{};
  detail::reference_contraction<T, Op, any_tensor> const contract{op, in, p, numbers};
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        auto const f = op.bind(detail::scalar_row<T>(p, op.mask, b, h, i, numbers));
        index_t const v_head = p.group(h, p.value_heads);
        auto const value_of = [&](index_t j) {
          [[maybe_unused]] T const factor = detail::key_factor(contract, f, b, h, i, j);
          return [&, j, factor](index_t d) {
            static_cast<void>(factor);  // read only with a weight gate
            T const v = detail::gated_value<T>(in, f, b, v_head, j, d);
            if constexpr (Op::has_weight_gate)
              return T(factor * v);
            else
              return v;
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

}  // namespace attune
