// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   result = forward(reference<T>{}, op, inputs):   scores, logits, weights, w0, lse and out of every row
//
// The oracle: each row evaluated as the text books write it, all keys at hand at once. It shares the policies with the
// other executors, and nothing else: no tiles, no running reference, no state.
#pragma once

#include <vector>

#include <Eigen/Core>

#include <attune/exec/problem.hpp>
#include <attune/exec/reference/executor.hpp>
#include <attune/operators/row_state.hpp>

namespace attune {

/// Everything a dense evaluation knows of one head. Rows are queries, columns keys (or value features).
template <class T>
struct dense_head {
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using column = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> visible;
  matrix scores;         ///< before length scale and gate; -inf where not visible
  matrix logits;         ///< what the normalizer sees, row constant included; -inf where not visible
  matrix weights;        ///< 0 where not visible
  matrix out;            ///< (Lq, Dv)
  column lse;            ///< natural log; empty where the operator has none
  column ground_weight;  ///< w0; empty where the operator has none
};

/// The result of a dense evaluation.
template <class T>
struct dense_result {
  problem_shape extents;
  std::vector<dense_head<T>> heads;  ///< B H of them, batch-major
  dense_head<T> const& at(index_t b, index_t h) const { return heads[std::size_t(b * extents.heads + h)]; }
};

namespace detail {

/// The contractions of the closed list, as sums over features.
template <class T, class Op>
struct reference_contraction {
  Op const& op;
  inputs<Op, any_tensor> const& in;
  problem_shape const& p;

  T value(contraction::dot, index_t b, index_t h, index_t i, index_t j) const {
    return product(in.q, in.k, p.group(h, p.key_heads), p.width, b, h, i, j);
  }
  T value(contraction::gate_dot, index_t b, index_t h, index_t i, index_t j) const {
    return product(in.gate_q, in.gate_k, p.group(h, p.gate_key_heads), p.gate_width, b, h, i, j);
  }
  T value(contraction::given_scores, index_t b, index_t h, index_t i, index_t j) const { return T(in.scores(b, h, i, j)); }
  T value(contraction::given_gates, index_t b, index_t h, index_t i, index_t j) const { return T(in.gates(b, h, i, j)); }

  /// Values of all contractions of a pair, in the operator's order.
  template <class... C>
  void all(contraction::list<C...>, T* to, index_t b, index_t h, index_t i, index_t j) const {
    (..., (*to++ = value(C{}, b, h, i, j)));
  }

 private:
  static T product(any_tensor const& x, any_tensor const& y, index_t y_head, index_t width, index_t b, index_t h, index_t i,
                   index_t j) {
    T sum(0);
    x.row(b, h, i, [&](auto const* left, index_t left_step) {
      y.row(b, y_head, j, [&](auto const* right, index_t right_step) {
        for (index_t d = 0; d < width; ++d) sum = sum + T(left[d * left_step]) * T(right[d * right_step]);
      });
    });
    return sum;
  }
};

/// A head of `rows` rows that has seen nothing.
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
  return head;
}

/// Calls visit(j, score, logit') for every visible key of a row, in ascending order.
template <class T, class Op, class Bound, class Visit>
void for_each_visible(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p, Bound const& f, index_t b,
                      index_t h, index_t i, key_interval range, Visit const& visit) {
  reference_contraction<T, Op> const contract{op, in, p};
  mask_row const r = p.row(b, h, i);
  for (key_interval k = mask::next(op.mask, r, range.first); !k.empty() && k.first < range.last;
       k = mask::next(op.mask, r, k.last))
    for (index_t j = k.first; j < k.last && j < range.last; ++j) {
      T x[Op::contractions::size + 1];
      contract.all(typename Op::contractions{}, x, b, h, i, j);
      T const s = f.score(x, key<T>{T(double(j))});
      visit(j, s, f.logit_of_score(s, x));
    }
}

template <class T, class Op>
void dense_row(Op const& op, inputs<Op, any_tensor> const& in, problem_shape const& p, index_t b, index_t h, index_t i,
               dense_head<T>& to, index_t slot) {
  using normalizer = typename Op::normalizer_policy;
  constexpr normalizer_traits is = normalizer::traits;
  row<T> const r = scalar_row<T>(p, op.mask, b, h, i);
  auto const f = op.bind(r);
  std::vector<index_t> keys;
  std::vector<T> logits;
  for_each_visible<T>(op, in, p, f, b, h, i, {0, p.keys}, [&](index_t j, T const& s, T const& a) {
    keys.push_back(j);
    logits.push_back(a);
    to.visible(slot, j) = true;
    to.scores(slot, j) = s;
    to.logits(slot, j) = a + f.logit_shift;
  });

  T m = initial_reference<normalizer, decltype(f.normalizer), T>(f.normalizer);
  if constexpr (is.reference == mass_reference::running_maximum)
    for (T const& a : logits) m = math::larger(m, a);
  T earned(0), ground(0);
  for (std::size_t n = 0; n < keys.size(); ++n) {
    T const mass = f.normalizer.earned(logits[n], m);
    to.weights(slot, keys[n]) = mass;
    earned = earned + mass;
    if constexpr (is.ground_mass) ground = ground + f.normalizer.ground(logits[n], m);
  }
  auto const done = finish_masses<normalizer>(f.normalizer, m, earned, ground, r.visible);
  for (index_t const j : keys) to.weights(slot, j) = to.weights(slot, j) * done.value_factor;
  index_t const v_head = p.group(h, p.value_heads);
  for (index_t const j : keys)
    in.v.row(b, v_head, j, [&](auto const* v, index_t step) {
      for (index_t d = 0; d < p.value_width; ++d) to.out(slot, d) = to.out(slot, d) + to.weights(slot, j) * T(v[d * step]);
    });
  if constexpr (Op::uses(field::v0))
    for (index_t d = 0; d < p.value_width; ++d)
      to.out(slot, d) = to.out(slot, d) + done.ground_weight * element<T>(in.v0, broadcast(in.v0, b, h, i), d);
  if constexpr (Op::has_lse) to.lse(slot) = done.lse + f.logit_shift;
  if constexpr (Op::has_ground_weight) to.ground_weight(slot) = done.ground_weight;
}

}  // namespace detail

/// Evaluates an operator densely against an output of `extents` (B, H, Lq, Dv).
/// Errors:     attune::error names argument, value and expectation.
/// Complexity: O(B H Lq Lk (D + Dv)) operations of T, memory O(B H Lq Lk).
template <class T, class Op>
dense_result<T> forward(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, shape const& extents) {
  problem_shape const p = detail::checked_problem("forward", op, in, extents);
  dense_result<T> result{p, {}};
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      dense_head<T>& head = result.heads.emplace_back(detail::blank_head<T, Op>(p, p.queries));
      for (index_t i = 0; i < p.queries; ++i) detail::dense_row(op, in, p, b, h, i, head, i);
    }
  return result;
}

/// The same with the extents told by the inputs.
template <class T, class Op>
dense_result<T> forward(reference<T> exec, Op const& op, inputs<Op, any_tensor> const& in) {
  return forward(exec, op, in, detail::output_shape(in));
}

/// One row only, all its intermediates in row 0 of the result: for samples at a precision too dear for the whole.
template <class T, class Op>
dense_head<T> forward_row(reference<T>, Op const& op, inputs<Op, any_tensor> const& in, index_t b, index_t h, index_t i) {
  problem_shape const p = detail::checked_problem("forward_row", op, in, detail::output_shape(in));
  if (b < 0 || b >= p.batch || h < 0 || h >= p.heads || i < 0 || i >= p.queries)
    throw error(
        "forward_row", "(batch, head, query)",
        "the value (" + std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(i) + ")",
        "indices below (" + std::to_string(p.batch) + ", " + std::to_string(p.heads) + ", " + std::to_string(p.queries) + ")");
  dense_head<T> head = detail::blank_head<T, Op>(p, 1);
  detail::dense_row(op, in, p, b, h, i, head, 0);
  return head;
}

/// The same call as on every other executor: outputs are written as T.
template <class T, class Op>
void forward(reference<T> exec, Op const& op, inputs<Op, any_tensor> const& in, outputs<Op, T> const& to) {
  problem_shape const p = detail::checked_problem("forward", op, in, to.out.extents());
  if constexpr (Op::has_lse) detail::require_row_output("forward", "lse", to.lse.values, p);
  if constexpr (Op::has_ground_weight) detail::require_row_output("forward", "ground_weight", to.ground_weight, p);
  dense_result<T> const result = forward(exec, op, in, to.out.extents());
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      dense_head<T> const& head = result.at(b, h);
      for (index_t i = 0; i < p.queries; ++i) {
        for (index_t d = 0; d < p.value_width; ++d) to.out(b, h, i, d) = head.out(i, d);
        if constexpr (Op::has_lse)
          if (!to.lse.values.absent()) to.lse.values(b, h, i, 0) = head.lse(i);
        if constexpr (Op::has_ground_weight)
          if (!to.ground_weight.absent()) to.ground_weight(b, h, i, 0) = head.ground_weight(i);
      }
    }
}

}  // namespace attune
