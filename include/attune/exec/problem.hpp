// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   problem_shape const p = detail::checked_problem("forward", op, in, out.extents())
//
// The extents of a call, checked once for every executor: each argument against the ones it must agree with, each failure
// naming argument, value and expectation.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include <attune/core/distinct.hpp>
#include <attune/core/storage.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/operators/inputs.hpp>
#include <attune/operators/listing.hpp>

namespace attune {

namespace detail {

ATTUNE_NOINLINE inline void require_extent(char const* function, char const* argument, char const* axis, index_t got,
                                           index_t expected, std::string_view because) {
  if (got != expected) throw error(function, argument, text(axis, " extent ", got), text(expected, ", ", because));
}
ATTUNE_NOINLINE inline void require_group(char const* function, char const* argument, index_t got, index_t heads) {
  if (heads == 0) return;  // nothing will be read
  if (got < 1 || heads % got != 0)
    throw error(function, argument, text("head extent ", got), text("a divisor of ", heads, ", the number of query heads"));
}
ATTUNE_NOINLINE inline void require_at_least_one(char const* function, char const* argument, char const* axis, index_t got) {
  if (got < 1) throw error(function, argument, text(axis, " extent ", got), "at least 1");
}
/// Throws unless the extents are those expected; `because` says what they are.
ATTUNE_NOINLINE inline void require_shape(char const* function, char const* argument, shape const& got, shape const& expected,
                                          std::string_view because) {
  if (!(got == expected)) throw error(function, argument, text("shape ", to_string(got)), text(to_string(expected), because));
}
inline void require_pairs(char const* function, char const* argument, shape const& e, problem_shape const& p) {
  require_shape(function, argument, e, {p.batch, p.heads, p.queries, p.keys}, ": (batch, head, query, key)");
}
ATTUNE_NOINLINE inline void require_queries(char const* function, char const* name, shape const& e, problem_shape const& p) {
  require_extent(function, name, "batch", e.batch, p.batch, "the batch of out");
  require_extent(function, name, "head", e.head, p.heads, "the heads of out");
  require_extent(function, name, "position", e.position, p.queries, "the queries of out");
  require_at_least_one(function, name, "feature", e.feature);
}
ATTUNE_NOINLINE inline void require_keys(char const* function, char const* name, shape const& e, problem_shape const& p,
                                         index_t width, std::string_view because, index_t& heads) {
  require_extent(function, name, "batch", e.batch, p.batch, "the batch of out");
  require_group(function, name, e.head, p.heads);
  require_extent(function, name, "position", e.position, p.keys, "the keys of v");
  require_extent(function, name, "feature", e.feature, width, because);
  heads = e.head;
}
inline void require_projections(char const* function, char const* q_name, char const* k_name, shape const& q, shape const& k,
                                problem_shape const& p, index_t& width, index_t& key_heads) {
  require_queries(function, q_name, q, p);
  width = q.feature;
  require_keys(function, k_name, k, p, width, text("the width of ", q_name), key_heads);
}

/// What a contraction asks of the tables of the policy that named it.
template <class Contraction, class Owner>
void check_contraction(char const* function, Contraction, Owner const& owner, problem_shape const& p) {
  index_t const nearest = p.offset - (p.keys - 1), farthest = p.queries - 1 + p.offset;  // values of i + offset - j
  if (p.queries == 0 || p.keys == 0) return;
  if constexpr (std::is_same_v<Contraction, contraction::relative_dot>) {
    index_t const rows = owner.relative.rows(), center = rows / 2;
    if (nearest + center < 0 || farthest + center >= rows)
      throw error(function, "table relative", text(rows, " rows, for distances from ", -center, " to ", rows - center - 1),
                  text("rows for the distances ", nearest, " to ", farthest, " of queries and keys"));
  } else if constexpr (std::is_same_v<Contraction, contraction::gathered>) {
    if constexpr (requires { owner.check(function); }) owner.check(function);
    for (index_t distance = nearest; distance <= farthest; ++distance)
      if (index_t const n = owner.index(distance); n < 0 || n >= owner.values.rows())
        throw error(function, "table values", text(owner.values.rows(), " rows"),
                    text("a row ", n, " for the distance ", distance));
  } else if constexpr (std::is_same_v<Contraction, contraction::fourier>) {
    if (owner.cosine.rows() != owner.frequency.rows() || owner.sine.rows() != owner.frequency.rows())
      throw error(function, "tables cosine, sine, frequency",
                  text(owner.cosine.rows(), ", ", owner.sine.rows(), " and ", owner.frequency.rows(), " rows"),
                  "equal numbers");
  }
}

/// What an executor with these views computes in, as far as the range of parameters is concerned.
template <class View>
struct element_of {
  using type = double;
};
template <>
struct element_of<tensor<float const>> {
  using type = float;
};
template <storage_only S>
struct element_of<tensor<S const>> {
  using type = float;
};

/// Throws unless parameters and tables fit the problem.
template <class Number>
ATTUNE_NOINLINE void check_listed(char const* function, std::span<operator_parameter const> parameters,
                                  std::span<operator_table const> tables, problem_shape const& p, memory_kind where) {
  for (operator_parameter const& x : parameters) {
    check_parameter<Number>(function, x.name, *x.at, x.values, p.batch, p.heads, p.queries, where);
    if (x.policy == "value_gate." && x.at->is_set() && x.at->extents().position != 1)
      throw error(function, text("parameter ", x.name), "one value per query",
                  "values shared by queries: a value gate acts on keys, for all queries alike");
  }
  for (operator_table const& x : tables) check_table(function, x.name, *x.at, x.width, p.batch, p.heads, p.width, where);
}

/// Throws if masses that are held relative to a running maximum do not scale with it: earned(a, m) must be e^-m times what it is at 0, or
/// rows come out wrong as soon as their maximum rises. Looked at for one row and two references; reads no device's memory.
template <class Op>
void check_masses(char const* function, [[maybe_unused]] Op const& op, problem_shape const& p, memory_kind where) {
  using normalizer = typename Op::normalizer_policy;
  constexpr normalizer_traits is = normalizer::traits;
  if constexpr (is.family == row_family::masses && is.reference == mass_reference::running_maximum) {
    if (where == memory_kind::device || p.batch * p.heads * p.queries * p.keys == 0) return;
    auto const f = op.normalizer.bind(row_of_count<double>(p, p.keys, 0, 0, 0));
    double low = 2;
    if constexpr (needs_lowest_reference<normalizer>) low = math::larger(low, f.lowest_reference());
    if (!(low < 100)) return;  // a reference that leaves no mass at all to compare
    auto const scales = [&](auto const& mass) {
      double const here = mass(low - 0.25, low), higher = mass(low - 0.25, low + 1) * 2.718281828459045;
      return std::fabs(here - higher) <= 1e-9 * std::fabs(here);
    };
    bool right = scales([&](double a, double m) { return f.earned(a, m); });
    if constexpr (is.ground_mass) right = right && scales([&](double a, double m) { return f.ground(a, m); });
    if (!right)
      throw error(function, "the normalizer", "masses that do not scale with their reference m",
                  "earned(a, m), and ground(a, m), to be e^-m times what they are at m = 0; or traits{.reference = "
                  "mass_reference::none}, "
                  "where m is always 0 (docs/policies.md#normalizers)");
  }
}

/// Checks inputs, parameters and mask of an operator against (B, H, Lq, Dv), those of `out`, and returns all extents. `where`:
/// what lies in the memory of a device is checked by its shape alone.
template <class Op, class View>
problem_shape checked_problem(char const* function, Op const& op, inputs<Op, View> const& in, shape const& out,
                              memory_kind where = memory_kind::host) {
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
  if constexpr (Op::uses(field::q)) {
    require_queries(function, "q", in.q.extents(), p);
    p.width = in.q.extents().feature;
  }
  if constexpr (Op::uses(field::k)) require_keys(function, "k", in.k.extents(), p, p.width, "the width of q", p.key_heads);
  if constexpr (Op::uses(field::gate_q))
    require_projections(function, "gate_q", "gate_k", in.gate_q.extents(), in.gate_k.extents(), p, p.gate_width,
                        p.gate_key_heads);
  if constexpr (Op::uses(field::scores)) require_pairs(function, "scores", in.scores.extents(), p);
  if constexpr (Op::uses(field::gates)) require_pairs(function, "gates", in.gates.extents(), p);
  if constexpr (Op::uses(field::bias)) require_pairs(function, "bias", in.bias.extents(), p);
  if constexpr (Op::uses(field::sort_q)) {
    require_queries(function, "sort_q", in.sort_q.extents(), p);
    require_extent(function, "sort_q", "feature", in.sort_q.extents().feature, 1, "one number per query");
    require_keys(function, "sort_k", in.sort_k.extents(), p, 1, "one number per key", p.sort_key_heads);
  }
  if constexpr (Op::uses(field::position_q))
    require_projections(function, "position_q", "position_k", in.position_q.extents(), in.position_k.extents(), p,
                        p.position_width, p.position_key_heads);
  if constexpr (Op::uses(field::center)) {
    require_projections(function, "center", "place", in.center.extents(), in.place.extents(), p, p.axes, p.place_heads);
    require_queries(function, "spread", in.spread.extents(), p);
    require_extent(function, "spread", "feature", in.spread.extents().feature, p.axes, "the axes of center");
  }
  if constexpr (Op::uses(field::key_bias))
    require_keys(function, "key_bias", in.key_bias.extents(), p, 1, "one number per key", p.key_bias_heads);
  if constexpr (Op::uses(field::value_gate))
    require_shape(function, "value_gate", in.value_gate.extents(), v, ", the shape of v");
  if constexpr (Op::uses(field::output_gate)) {
    require_queries(function, "output_gate", in.output_gate.extents(), p);
    p.output_gate_width = in.output_gate.extents().feature;
    if (p.output_gate_width != 1)
      require_extent(function, "output_gate", "feature", p.output_gate_width, p.value_width,
                     "the width of v, or 1 for one gate per head");
  }
  if constexpr (Op::uses(field::v0)) {
    shape const g = in.v0.extents();
    if ((g.batch != 1 && g.batch != p.batch) || (g.head != 1 && g.head != p.heads) ||
        (g.position != 1 && g.position != p.queries) || g.feature != p.value_width)
      throw error(function, "v0", text("shape ", to_string(g)),
                  text("(1 or ", p.batch, ", 1 or ", p.heads, ", 1 or ", p.queries, ", ", p.value_width, ")"));
  }
  p.offset = in.offset.value_or(p.keys - p.queries);
  // Positions stay exact as doubles, and their sums stay integers; half of all where index_t has 32 bits.
  constexpr index_t farthest = index_t(1) << (sizeof(index_t) < 8 ? 30 : 52);
  if (p.offset > farthest || p.offset < -farthest)
    throw error(function, "offset", text("the value ", p.offset), text("a number in [", -farthest, ", ", farthest, "]"));
  check_listed<typename element_of<View>::type>(function, listed_parameters(op), listed_tables(op), p, where);
  [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
    (..., check_contraction(function, C{}, op.template owner<Index>(), p));
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
  mask::check(op.mask, mask_shape{p.batch, p.heads, p.queries, p.keys, where});
  check_masses(function, op, p, where);
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
  else if constexpr (Op::uses(field::sort_q))
    s = in.sort_q.extents();
  else if constexpr (Op::uses(field::position_q))
    s = in.position_q.extents();
  else if constexpr (Op::uses(field::center))
    s = in.center.extents();
  else if constexpr (Op::uses(field::bias))
    s = in.bias.extents();
  else if constexpr (Op::uses(field::output_gate))
    s = in.output_gate.extents();
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
  require_shape(function, argument, x.extents(), {p.batch, p.heads, p.queries, 1}, ": one number per row");
  require_distinct(function, argument, x);
}

template <class Op, class T>
void check_outputs(char const* function, outputs<Op, T> const& out, problem_shape const& p) {
  require_distinct(function, "out", out.out);
  if constexpr (Op::has_lse) require_row_output(function, "lse", out.lse.values, p);
  if constexpr (Op::has_ground_weight) require_row_output(function, "ground_weight", out.ground_weight, p);
  if constexpr (Op::has_threshold) require_row_output(function, "threshold", out.threshold, p);
}

}  // namespace detail
}  // namespace attune
