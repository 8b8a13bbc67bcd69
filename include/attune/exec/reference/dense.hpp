// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The oracle: scores, logits, weights, w0, lse and out of every row. Each row is evaluated as textbooks write it, with
//             all keys available at once. It shares only the policies
// with the other executors: it has no tiles, no running reference and no state.
#pragma once

#include <vector>

#include <Eigen/Core>

#include <attune/exec/reference/executor.hpp>
#include <attune/exec/reference/row.hpp>

namespace attune {

/// Everything that a dense evaluation computes for one head. Rows are queries, columns are keys (or value features).
template <class T>
struct dense_head {
  /// One row per query.
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using column = Eigen::Matrix<T, Eigen::Dynamic, 1>;  ///< one number per query
  /// (Lq, Lk): which keys each query sees.
  Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> visible;
  matrix scores;         ///< before length scale and gate; -inf where not visible
  matrix logits;         ///< the normalizer's input, row constant included; -inf where not visible
  matrix weights;        ///< before the weight gate; 0 where not visible
  matrix out;            ///< (Lq, Dv)
  column lse;            ///< natural log; empty where the operator has none
  column ground_weight;  ///< w0; empty where the operator has none
  column threshold;      ///< if the normalizer has a candidate set; NaN where no key has weight
};

/// The result of a dense evaluation.
template <class T>
struct dense_result {
  problem_shape extents;             ///< of the call
  std::vector<dense_head<T>> heads;  ///< B H heads, batch-major
  /// Head h of batch element b; not checked.
  dense_head<T> const& at(index_t b, index_t h) const { return heads[std::size_t(b * extents.heads + h)]; }
};

namespace detail {

/// A head with `rows` rows that have seen no keys.
template <class T, class Op>
dense_head<T> blank_head(problem_shape const& p, index_t rows) {
  T const off = -math::infinity<T>();
  dense_head<T> head;
  head.visible.setConstant(rows, p.keys, false);
  head.scores.setConstant(rows, p.keys, off);
  head.logits.setConstant(rows, p.keys, off);
  head.weights.setConstant(rows, p.keys, T(0));
  head.out.setConstant(rows, p.value_width, T(0));
  if constexpr (Op::has_lse) head.lse.setConstant(rows, T(0));
  if constexpr (Op::has_ground_weight) head.ground_weight.setConstant(rows, T(0));
  if constexpr (Op::has_threshold) head.threshold.setConstant(rows, T(0));
  return head;
}

template <class T, class Op, class View>
void dense_row(Op const& op, inputs<Op, View> const& in, problem_shape const& p, index_t b, index_t h, index_t i,
               dense_head<T>& to, index_t slot, lift<T> const& numbers = {}) {
  using normalizer = typename Op::normalizer_policy;
  row<T> const r = scalar_row<T>(p, op.mask, b, h, i, numbers);
  auto const f = op.bind(r);
  visible_keys<T> seen;
  reference_contraction<T, Op, View> const contract{op, in, p, numbers};
  for_each_visible(contract, f, b, h, i, {0, p.keys}, [&](index_t j, T const& s, T const& a) {
    seen.keys.push_back(j);
    seen.logits.push_back(a);
    to.visible(slot, j) = true;
    to.scores(slot, j) = s;
    to.logits(slot, j) = a + f.logit_shift;
  });
  weighed_row<T> const done = weigh<normalizer>(f.normalizer, seen, r.visible);
  index_t const v_head = p.group(h, p.value_heads);
  for (std::size_t n = 0; n < seen.keys.size(); ++n) {
    index_t const j = seen.keys[n];
    to.weights(slot, j) = done.weights[n];
    if (Op::has_threshold && scalar<T>::all(done.weights[n] == T(0))) continue;  // outside the support: never read
    T const w = gate_of_key(contract, f, b, h, i, j)(done.weights[n]);
    if constexpr (!Op::has_value_gate && !Op::has_pair_values && std::is_same_v<View, any_tensor>)
      in.v.row(b, v_head, j, [&](auto const* v, index_t step) {
        for (index_t d = 0; d < p.value_width; ++d) to.out(slot, d) = to.out(slot, d) + w * T(v[d * step]);
      });
    else
      for (index_t d = 0; d < p.value_width; ++d)
        to.out(slot, d) = to.out(slot, d) + w * value_of_pair(contract, f, b, h, i, v_head, j, d);
  }
  if constexpr (Op::uses(field::v0)) {
    for (index_t d = 0; d < p.value_width; ++d)
      to.out(slot, d) = to.out(slot, d) + done.ground_weight * read_shared<T>(in.v0, b, h, i, d);
  }
  if constexpr (Op::has_output_gate)
    for (index_t d = 0; d < p.value_width; ++d)
      to.out(slot, d) = to.out(slot, d) * output_factor<T>(in, p, f, b, h, i, d);
  if constexpr (Op::has_lse)  // -inf (no mass at all) does not move
    to.lse(slot) = math::select(done.lse == -math::infinity<T>(), done.lse, T(done.lse + f.logit_shift));
  if constexpr (Op::has_ground_weight) to.ground_weight(slot) = done.ground_weight;
  if constexpr (Op::has_threshold) to.threshold(slot) = done.threshold;
}

template <class T, class Op, class View>
dense_result<T> dense_forward(Op const& op, inputs<Op, View> const& in, problem_shape const& p,
                              lift<T> const& numbers = {}) {
  dense_result<T> result{p, {}};
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      dense_head<T>& head = result.heads.emplace_back(blank_head<T, Op>(p, p.queries));
      for (index_t i = 0; i < p.queries; ++i) dense_row(op, in, p, b, h, i, head, i, numbers);
    }
  return result;
}

}  // namespace detail

}  // namespace attune
