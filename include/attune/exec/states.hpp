// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   part = accumulate(exec, op, inputs, keys);   whole = merge(part, part);   finish(exec, op, inputs, whole, outputs)
//
// The states of all rows of a call: what split-KV decode, ring attention and reductions across processes exchange.
#pragma once

#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/operators/row_state.hpp>

namespace attune {

/// States of (B, H, Lq) rows, row-major. Plain arrays: they can be sent as they are.
template <class T>
struct row_states {
  problem_shape extents;
  std::vector<T> reference, earned, ground;  ///< B H Lq
  std::vector<T> acc;                        ///< B H Lq Dv

  row_states() = default;
  explicit row_states(problem_shape const& p)
      : extents(p), reference(std::size_t(p.batch * p.heads * p.queries), T(0)), earned(reference), ground(reference),
        acc(std::size_t(p.batch * p.heads * p.queries * p.value_width), T(0)) {}

  index_t at(index_t b, index_t h, index_t i) const { return (b * extents.heads + h) * extents.queries + i; }

  row_state<T> load(index_t n) const {
    auto const u = std::size_t(n);
    auto const begin = acc.begin() + n * extents.value_width;
    return {reference[u], earned[u], ground[u], std::vector<T>(begin, begin + extents.value_width)};
  }
  void store(index_t n, row_state<T> const& s) {
    auto const u = std::size_t(n);
    reference[u] = s.reference;
    earned[u] = s.earned;
    ground[u] = s.ground;
    std::copy(s.acc.begin(), s.acc.end(), acc.begin() + n * extents.value_width);
  }
};

namespace detail {

/// (B, H, Lq, Dv) of the rows that a state describes.
template <class T>
shape rows_of(row_states<T> const& s) {
  return {s.extents.batch, s.extents.heads, s.extents.queries, s.extents.value_width};
}

}  // namespace detail

/// The states of both sets of keys. Throws attune::error unless both belong to calls of the same extents.
template <class T>
row_states<T> merge(row_states<T> a, row_states<T> const& b) {
  shape const first = detail::rows_of(a), second = detail::rows_of(b);
  if (!(first == second))
    throw error("merge", "the second state", "rows of shape " + to_string(second), to_string(first) + ", as the first");
  for (index_t n = 0; n < index_t(a.reference.size()); ++n) a.store(n, merge(a.load(n), b.load(n)));
  return a;
}

/// Divides the merged states of all keys and writes the outputs. `in` are the inputs of the whole problem: v0 and the
/// number of visible keys come from there, the sink's mass enters here, once.
template <class T, class Op, class View>
void finish(Op const& op, inputs<Op, View> const& in, row_states<T> const& states, outputs<Op, T> const& to) {
  using normalizer = typename Op::normalizer_policy;
  problem_shape const p = detail::checked_problem("finish", op, in, to.out.extents());
  if constexpr (Op::has_lse) detail::require_row_output("finish", "lse", to.lse.values, p);
  if constexpr (Op::has_ground_weight) detail::require_row_output("finish", "ground_weight", to.ground_weight, p);
  if (!(detail::rows_of(states) == to.out.extents()))
    throw error("finish", "states", "rows of shape " + to_string(detail::rows_of(states)),
                to_string(to.out.extents()) + ", the shape of out");
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h)
      for (index_t i = 0; i < p.queries; ++i) {
        row<T> const r = detail::scalar_row<T>(p, op.mask, b, h, i);
        auto const f = op.bind(r);
        row_state<T> const s = states.load(states.at(b, h, i));
        auto const done = finish_masses<normalizer>(f.normalizer, s.reference, s.earned, s.ground, r.visible);
        for (index_t d = 0; d < p.value_width; ++d) {
          T x = s.acc[std::size_t(d)] * done.value_factor;
          if constexpr (Op::uses(field::v0))
            x = x + done.ground_weight * detail::element<T>(in.v0, detail::broadcast(in.v0, b, h, i), d);
          to.out(b, h, i, d) = x;
        }
        if constexpr (Op::has_lse)
          if (!to.lse.values.absent()) to.lse.values(b, h, i, 0) = done.lse + f.logit_shift;
        if constexpr (Op::has_ground_weight)
          if (!to.ground_weight.absent()) to.ground_weight(b, h, i, 0) = done.ground_weight;
      }
}

/// The same, called as forward is: the executor tells the types, so that inputs and outputs may be braced lists.
template <class Exec, class Op>
void finish(Exec const&, Op const& op, inputs<Op, typename Exec::view> const& in,
            row_states<typename Exec::value_type> const& states, outputs<Op, typename Exec::value_type> const& to) {
  finish<typename Exec::value_type>(op, in, states, to);
}

}  // namespace attune
