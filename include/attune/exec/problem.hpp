// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   H query heads, Hk key heads, Hv value heads:   head h reads key head h Hk / H and value head h Hv / H
//
// The extents of a call, checked once for every executor: each argument against the ones it must agree with, each failure
// naming argument, value and expectation.
#pragma once

#include <cmath>
#include <string>

#include <attune/operators/attention.hpp>
#include <attune/operators/inputs.hpp>

namespace attune {

/// Extents of one call.
struct problem_shape {
  index_t batch = 0, heads = 0, queries = 0, keys = 0;
  index_t key_heads = 1, value_heads = 1, gate_key_heads = 1;
  index_t width = 0, value_width = 0, gate_width = 0;
  index_t offset = 0;

  /// The head of a tensor with `group_heads` heads that query head h reads.
  ATTUNE_HD constexpr index_t group(index_t h, index_t group_heads) const { return h * group_heads / heads; }
  constexpr mask_row row(index_t b, index_t h, index_t i) const { return {b, h, i, i + offset, queries, keys}; }
};

namespace detail {

inline void require_extent(char const* function, char const* argument, char const* axis, index_t got, index_t expected,
                           std::string const& because) {
  if (got != expected)
    throw error(function, argument, std::string(axis) + " extent " + std::to_string(got),
                std::to_string(expected) + ", " + because);
}
inline void require_group(char const* function, char const* argument, index_t got, index_t heads) {
  if (heads == 0) return;  // nothing will be read
  if (got < 1 || heads % got != 0)
    throw error(function, argument, "head extent " + std::to_string(got),
                "a divisor of " + std::to_string(heads) + ", the number of query heads");
}
inline void require_at_least_one(char const* function, char const* argument, char const* axis, index_t got) {
  if (got < 1) throw error(function, argument, std::string(axis) + " extent " + std::to_string(got), "at least 1");
}
template <class View>
void require_pairs(char const* function, char const* argument, View const& x, problem_shape const& p) {
  shape const expected{p.batch, p.heads, p.queries, p.keys};
  if (!(x.extents() == expected))
    throw error(function, argument, "shape " + to_string(x.extents()), to_string(expected) + ": (batch, head, query, key)");
}
template <class View>
void require_projections(char const* function, char const* q_name, char const* k_name, View const& q, View const& k,
                         problem_shape const& p, index_t& width, index_t& key_heads) {
  shape const a = q.extents(), c = k.extents();
  require_extent(function, q_name, "batch", a.batch, p.batch, "the batch of out");
  require_extent(function, q_name, "head", a.head, p.heads, "the heads of out");
  require_extent(function, q_name, "position", a.position, p.queries, "the queries of out");
  require_at_least_one(function, q_name, "feature", a.feature);
  require_extent(function, k_name, "batch", c.batch, p.batch, "the batch of out");
  require_group(function, k_name, c.head, p.heads);
  require_extent(function, k_name, "position", c.position, p.keys, "the keys of v");
  require_extent(function, k_name, "feature", c.feature, a.feature, std::string("the width of ") + q_name);
  width = a.feature;
  key_heads = c.head;
}

/// Checks inputs, parameters and mask of an operator against (B, H, Lq, Dv), those of `out`, and returns all extents.
template <class Op, class View>
problem_shape checked_problem(char const* function, Op const& op, inputs<Op, View> const& in, shape const& out) {
  problem_shape p;
  p.batch = out.batch;
  p.heads = out.head;
  p.queries = out.position;
  shape const v = in.v.extents();
  p.keys = v.position;
  p.value_width = out.feature;
  require_extent(function, "v", "batch", v.batch, p.batch, "the batch of out");
  require_group(function, "v", v.head, p.heads);
  require_at_least_one(function, "v", "feature", v.feature);
  require_extent(function, "out", "feature", out.feature, v.feature, "the width of v");
  p.value_heads = v.head;
  if constexpr (Op::uses(field::q)) require_projections(function, "q", "k", in.q, in.k, p, p.width, p.key_heads);
  if constexpr (Op::uses(field::gate_q))
    require_projections(function, "gate_q", "gate_k", in.gate_q, in.gate_k, p, p.gate_width, p.gate_key_heads);
  if constexpr (Op::uses(field::scores)) require_pairs(function, "scores", in.scores, p);
  if constexpr (Op::uses(field::gates)) require_pairs(function, "gates", in.gates, p);
  if constexpr (Op::uses(field::v0)) {
    shape const g = in.v0.extents();
    if ((g.batch != 1 && g.batch != p.batch) || (g.head != 1 && g.head != p.heads) ||
        (g.position != 1 && g.position != p.queries) || g.feature != p.value_width)
      throw error(function, "v0", "shape " + to_string(g),
                  "(1 or " + std::to_string(p.batch) + ", 1 or " + std::to_string(p.heads) + ", 1 or " +
                      std::to_string(p.queries) + ", " + std::to_string(p.value_width) + ")");
  }
  p.offset = in.offset.value_or(p.keys - p.queries);
  constexpr index_t farthest = index_t(1) << 52;  // positions stay exact as doubles, and their sums stay integers
  if (p.offset > farthest || p.offset < -farthest)
    throw error(function, "offset", text("the value ", p.offset), text("a number in [", -farthest, ", ", farthest, "]"));
  for_each_parameter(op, [&](auto const& listed, auto const& policy) {
    check_parameter(function, listed.name, policy.*listed.member, listed.values, p.batch, p.heads, p.queries);
  });
  mask::check(op.mask, mask_shape{p.batch, p.heads, p.queries, p.keys});
  return p;
}

/// (B, H, Lq, Dv) of the output, told from the inputs: for calls that have no `out`.
template <class Op, class View>
shape output_shape(inputs<Op, View> const& in) {
  shape s;
  if constexpr (Op::uses(field::q))
    s = in.q.extents();
  else if constexpr (Op::uses(field::scores))
    s = in.scores.extents();
  else if constexpr (Op::uses(field::gate_q))
    s = in.gate_q.extents();
  else if constexpr (Op::uses(field::gates))
    s = in.gates.extents();
  else
    static_assert(never<Op>,
                  "attune: no input of this operator tells the number of queries: its kernel works from positions alone. Call "
                  "forward() with an output .out instead");
  s.feature = in.v.extents().feature;
  return s;
}

inline void require_interval(char const* function, key_interval keys, problem_shape const& p) {
  if (keys.first < 0 || keys.last > p.keys || keys.first > keys.last)
    throw error(function, "keys", text("the interval [", keys.first, ", ", keys.last, ")"),
                text("one within [0, ", p.keys, ")"));
}

template <class T>
void require_row_output(char const* function, char const* argument, tensor<T> const& x, problem_shape const& p) {
  if (x.absent()) return;
  shape const expected{p.batch, p.heads, p.queries, 1};
  if (!(x.extents() == expected))
    throw error(function, argument, "shape " + to_string(x.extents()), to_string(expected) + ": one number per row");
}

/// (batch, head, position) of a broadcast tensor that row (b, h, i) reads.
struct row_index {
  index_t batch, head, position;
};
template <class View>
row_index broadcast(View const& x, index_t b, index_t h, index_t i) {
  shape const e = x.extents();
  return {e.batch == 1 ? 0 : b, e.head == 1 ? 0 : h, e.position == 1 ? 0 : i};
}

/// One element as a T.
template <class T, class View>
T element(View const& x, row_index at, index_t d) {
  return T(x(at.batch, at.head, at.position, d));
}

/// Where v0 of a row starts.
template <class View>
auto ground_value_row(View const& v0, index_t b, index_t h, index_t i) {
  row_index const at = broadcast(v0, b, h, i);
  return v0.row(at.batch, at.head, at.position);
}

/// The scalar facts of a row that policies bind to.
template <class T, class Mask>
row<T> scalar_row(problem_shape const& p, Mask const& m, index_t b, index_t h, index_t i) {
  using std::log;
  using std::sqrt;
  index_t const k = mask::count(m, p.row(b, h, i));
  return {{b, h, i, p.queries},
          T(double(i + p.offset)),
          T(double(k)),
          k > 0 ? T(log(T(double(k)))) : T(0),
          p.width > 0 ? T(T(1) / T(sqrt(T(double(p.width))))) : T(0),
          T(0)};
}

}  // namespace detail
}  // namespace attune
