// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   problem_shape const p = detail::checked_problem("forward", op, in, out.extents())
//
// The extents of a call, checked once for every executor. Each argument is checked against those it must agree with.
// Each error names the argument, its value and the expectation.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <attune/core/distinct.hpp>
#include <attune/core/storage.hpp>
#include <attune/exec/problem_shape.hpp>
#include <attune/exec/terms.hpp>
#include <attune/exec/value_term.hpp>
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
    throw error(function, argument, text("head extent ", got),
                text(got < 1 ? "at least 1, " : "", "a divisor of ", heads, ", the number of query heads"));
}
ATTUNE_NOINLINE inline void require_at_least_one(char const* function, char const* argument, char const* axis,
                                                 index_t got) {
  if (got < 1) throw error(function, argument, text(axis, " extent ", got), "at least 1");
}
/// Throws unless the extents are as expected; `because` explains the expectation.
ATTUNE_NOINLINE inline void require_shape(char const* function, char const* argument, shape const& got,
                                          shape const& expected, std::string_view because) {
  if (!(got == expected))
    throw error(function, argument, text("shape ", to_string(got)), text(to_string(expected), because));
}
/// Throws unless the features are as expected and every other extent is as expected or 1 (shared).
ATTUNE_NOINLINE inline void require_shared(char const* function, char const* argument, shape const& got,
                                           shape const& expected, std::string_view because = "") {
  auto const fits = [](index_t x, index_t all) { return x == 1 || x == all; };
  if (!fits(got.batch, expected.batch) || !fits(got.head, expected.head) || !fits(got.position, expected.position) ||
      got.feature != expected.feature)
    throw error(function, argument, text("shape ", to_string(got)),
                text("(1 or ", expected.batch, ", 1 or ", expected.head, ", 1 or ", expected.position, ", ",
                     expected.feature, ")", because));
}
ATTUNE_NOINLINE inline void require_queries(char const* function, char const* name, shape const& e,
                                            problem_shape const& p) {
  require_extent(function, name, "batch", e.batch, p.batch, "the batch of out");
  require_extent(function, name, "head", e.head, p.heads, "the heads of out");
  require_extent(function, name, "position", e.position, p.queries, "the queries of out");
  require_at_least_one(function, name, "feature", e.feature);
}
ATTUNE_NOINLINE inline void require_keys(char const* function, char const* name, shape const& e,
                                         problem_shape const& p) {
  require_extent(function, name, "batch", e.batch, p.batch, "the batch of out");
  require_group(function, name, e.head, p.heads);
  require_extent(function, name, "position", e.position, p.keys, "the keys of v");
}

/// Checks the extents `e` of an input and stores what they determine in `p`. `v`: the extents of v. `source`: the input
/// that must have as many features.
ATTUNE_NOINLINE inline void check_field(char const* function, field f, field source, shape const& e, shape const& v,
                                        problem_shape& p) {
  char const* const name = name_of(f);
  bool const one = fields[std::size_t(f)].features[0] == '1';
  auto const require_width = [&](index_t width, char const* numbers) {
    if (e.feature == width) return;
    std::string const source_width = text(source == field::center ? "the axes of " : "the width of ", name_of(source));
    require_extent(function, name, "feature", e.feature, width, one ? numbers : source_width);
  };
  switch (side_of(f)) {
    case input_side::query:
      if (f == field::output_gate) {
        p.learn(f, source, e);
        return require_shared(function, name, e, p.rows(e.feature == 1 ? 1 : p.value_width),
                              ", the last the width of v or 1");
      }
      if (f == field::position_scores) {
        require_at_least_one(function, name, "feature", e.feature);
        p.learn(f, source, e);
        return require_shared(function, name, e, p.rows(e.feature));
      }
      require_queries(function, name, e, p);
      if (one || source != f) require_width(one ? 1 : p.width_of(f), "one number per query");
      return p.learn(f, source, e);
    case input_side::key:
      if (f == field::value_gate) {
        require_extent(function, name, "position", e.position, p.keys, "the keys of v");
        return require_shared(function, name, e, v, ": as v");
      }
      require_keys(function, name, e, p);
      require_width(source == f && !one ? (std::max)(e.feature, index_t(1)) : p.width_of(f), "one number per key");
      return p.learn(f, source, e);
    case input_side::pair:
      return require_shared(function, name, e, p.rows(p.keys), ": (batch, head, query, key)");
    case input_side::ground:
      return require_shared(function, name, e, p.rows(p.value_width));
  }
}

/// The name of a table of the operator. Throws if its policy does not list it.
ATTUNE_NOINLINE inline std::string listed_name(char const* function, std::span<operator_table const> tables,
                                               table const& x) {
  for (operator_table const& listed : tables)
    if (listed.at == &x) return text("table ", listed.name);
  throw error(function, "a table of a contraction", "no entry in the policy's tables()",
              "every table that the contraction reads");
}
/// The path of a listed table: "kernel.values".
ATTUNE_NOINLINE inline std::string path_of(std::span<operator_table const> tables, table const& x) {
  for (operator_table const& listed : tables)
    if (listed.at == &x) return listed.path();
  return {};
}
/// Throws unless a table has as many rows or columns as a contraction has terms.
ATTUNE_NOINLINE inline void require_terms(char const* function, std::string const& name, char const* axis, index_t got,
                                          index_t terms) {
  if (got != terms)
    throw error(function, name, text(got, " ", axis), text(terms, ", as many as the contraction has terms"));
}

/// A policy that checks its own values. A concept, because nvcc rejects a requires-expression in a generic lambda.
template <class Owner>
concept checks_itself = requires(Owner const& owner, char const* function) {
  { (owner.check)(function) } -> std::same_as<void>;
};

/// Checks what a contraction requires of its inputs and of its policy's tables: as many features, columns or rows as
/// the contraction has terms, and a row for every distance or visible pair.
template <class Contraction, class Owner, class Mask>
void check_contraction(char const* function, Contraction, Owner const& owner, std::span<operator_table const> tables,
                       [[maybe_unused]] Mask const& mask, problem_shape const& p, [[maybe_unused]] memory_kind where) {
  if (p.queries == 0 || p.keys == 0) return;
  if constexpr (contraction::Rotary<Contraction>)
    for (index_t b = 0; b < (!p.has_offsets() || where == memory_kind::device ? 1 : p.batch); ++b)
      check_angles(function, owner, p,
                   where == memory_kind::device && p.has_offsets() ? p.keys - p.queries : p.offset_of(b), where);
  for_each_operand<Contraction>([&]<int, class Operand>() {
    if constexpr (has_features<Operand>) {
      require_extent(function, name_of(Operand::of), "feature", p.width_of(Operand::of), term_count<Contraction>(p),
                     "the terms of a contraction that reads it");
    } else if constexpr (Operand::side == operand_side::table) {
      table const& x = Operand::table_of::of(owner);
      std::string const name = listed_name(function, tables, x);
      index_t const terms = term_count<Contraction>(p, owner);
      if constexpr (Operand::place == table_place::row)
        require_terms(function, name, "rows", x.rows(), terms);
      else
        require_terms(function, name, "columns", x.columns(), terms);
      if constexpr (Operand::place == table_place::column) require_terms(function, name, "rows", x.rows(), 1);
      if constexpr (Operand::place == table_place::of_key)
        if (x.rows() != p.keys)
          throw error(function, name, text(x.rows(), " rows"), text(p.keys, ", one for each key"));
      if constexpr (Operand::place == table_place::of_distance) {
        if constexpr (checks_itself<std::remove_cvref_t<decltype(owner)>>) (owner.check)(function);
        auto const check_row = [&](index_t distance) {
          if (index_t const n = Operand::table_of::row(owner, distance); n < 0 || n >= x.rows())
            throw error(function, name, text(x.rows(), " rows"), text("a row ", n, " for the distance ", distance));
        };
        index_t const several = !p.has_offsets() ? 1 : where == memory_kind::host ? p.batch : 0;
        for (index_t b = 0; b < several; ++b) {  // nearest and farthest: values of i + offset - j
          index_t const nearest = p.offset_of(b) - (p.keys - 1), farthest = p.queries - 1 + p.offset_of(b);
          check_row(nearest);
          check_row(farthest);
          if constexpr (!requires { Operand::table_of::rises; })
            for (index_t distance = nearest + 1; distance < farthest; ++distance) check_row(distance);
        }
      }
      if constexpr (contraction::is_by_pair<Operand>) {
        if constexpr (checks_itself<std::remove_cvref_t<decltype(owner)>>) (owner.check)(function);
        if (where == memory_kind::host) check_pair_rows<Operand>(function, owner, path_of(tables, x), mask, p);
      }
    }
  });
}

/// The type that an executor with these views computes in. Used for the range check of parameters.
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
  for (operator_table const& x : tables)
    check_table(function, x.name, *x.at, x.width, p.batch, p.heads, p.width, where);
}

/// Throws if masses relative to a running maximum do not scale with it. earned(a, m) must be e^-m times its value at m
/// = 0. Otherwise rows are wrong as soon as their maximum rises. Checks one row with two references. Reads no device
/// memory.
template <class Op>
void check_masses(char const* function, [[maybe_unused]] Op const& op, problem_shape const& p, memory_kind where) {
  using normalizer = typename Op::normalizer_policy;
  constexpr normalizer_traits is = normalizer::traits;
  if constexpr (is.family == row_family::masses && is.reference == mass_reference::running_maximum) {
    if (where == memory_kind::device || p.batch * p.heads * p.queries * p.keys == 0) return;
    auto const f = op.normalizer.bind(row_of_count<double>(p, p.keys, 0, 0, 0));
    double low = 2;
    if constexpr (needs_lowest_reference<normalizer>) low = math::larger(low, f.lowest_reference());
    if (!(low < 100)) return;  // with this reference no mass is left to compare
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
                  "where m is always 0 (docs/reference/policies.md#normalizers)");
  }
}

/// The first input that the operator reads and that must have as many features as f.
template <class Op>
constexpr field features_of(field f) {
  field source = f;
  bool found = false;
  for_each_field([&]<field F>() {
    if (!found && Op::uses(F) && width_source(F) == width_source(f)) source = F, found = true;
  });
  return source;
}

/// Checks the offset or the offsets of a call and stores them in p. Offsets in device memory are not read.
ATTUNE_NOINLINE inline void check_offsets(char const* function, std::optional<index_t> const& offset,
                                          std::optional<std::span<index_t const>> const& offsets, problem_shape& p,
                                          memory_kind where) {
  // Positions are exact in double, and their sums stay integers. With a 32-bit index_t: half of its range.
  constexpr index_t farthest = index_t(1) << (sizeof(index_t) < 8 ? 30 : 52);
  auto const within_limits = [&](std::string const& name, index_t x) {
    if (x > farthest || x < -farthest)
      throw error(function, name, text("the value ", x), text("a number in [", -farthest, ", ", farthest, "]"));
  };
  p.set_offset(offset.value_or(p.keys - p.queries));
  within_limits("offset", p.offset_of(0));
  if (!offsets.has_value()) return;
  if (offset.has_value())
    throw error(function, "offsets", "numbers next to an offset",
                "one of the two: offset if all batch elements have the same");
  if (index_t(offsets->size()) != p.batch)
    throw error(function, "offsets", text(offsets->size(), " numbers"),
                text(p.batch, ", one for each batch element of out"));
  p.set_offsets(offsets->data());
  if (where == memory_kind::host)
    for (index_t b = 0; b < p.batch; ++b) within_limits(text("offsets[", b, "]"), p.offset_of(b));
}

/// Checks the inputs, parameters and mask of an operator against `out`, the extents (B, H, Lq, Dv) of the output.
/// Returns all extents. `where`: for data in device memory, only the shape is checked.
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
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && F != field::v)
      check_field(function, F, features_of<Op>(F), member<F>(in).extents(), v, p);
    if constexpr (Op::uses(F) &&
                  requires(View const& x) { x.require_finite_scales(function, ""); })  // 8-bit codes with scales
      member<F>(in).require_finite_scales(function, name_of(F));
  });
  check_offsets(function, in.offset, in.offsets, p, where);
  listing<Op> const all(op);
  check_listed<typename element_of<View>::type>(function, all.parameters, all.tables, p, where);
  (mask::check)(op.mask, mask_shape{p.batch, p.heads, p.queries, p.keys, where});
  [&]<class... C, int... Index>(contraction::list<C...>, std::integer_sequence<int, Index...>) {
    (..., check_contraction(function, C{}, op.template owner<Index>(), all.tables, op.mask, p, where));
  }(typename Op::contractions{}, std::make_integer_sequence<int, Op::contractions::size>{});
  check_masses(function, op, p, where);
  if constexpr (checks_itself<typename Op::weight_gate_policy>) (op.weight_gate.check)(function);
  if constexpr (Op::has_value_term) {
    check_width_of_term(function, op, p);
    check_contraction(function, vectors_by_distance{}, op.value_term, all.tables, op.mask, p, where);
  }
  return p;
}

/// Whether an operator reads a field of that side.
template <class Op>
constexpr bool tells_queries(input_side side) {
  bool found = false;
  for_each_field([&]<field F>() { found = found || (Op::uses(F) && side_of(F) == side); });
  return found;
}

/// The extents (B, H, Lq, Dv) of the output, derived from the inputs: for calls that have no `out`.
template <class Op, class View>
shape output_shape(inputs<Op, View> const& in) {
  constexpr bool told = tells_queries<Op>(input_side::query) || tells_queries<Op>(input_side::pair);
  static_assert(
      told,
      "attune: no input of this operator tells the number of queries: its kernel works from positions alone. Call "
      "forward() with an output .out instead");
  shape s{0, 0, 0, 0};
  constexpr bool by_query = tells_queries<Op>(input_side::query);
  for_each_field([&]<field F>() {
    if constexpr (Op::uses(F) && side_of(F) == (by_query ? input_side::query : input_side::pair)) {
      shape const e = member<F>(in).extents();
      if (s == shape{0, 0, 0, 0} ||
          !by_query)  // by query: the first input; by pair (may be shared): the largest extents
        s = {(std::max)(s.batch, e.batch), (std::max)(s.head, e.head), (std::max)(s.position, e.position), 0};
    }
  });
  if constexpr (!by_query)
    s.batch = (std::max)(s.batch, in.v.extents().batch), s.head = (std::max)(s.head, in.v.extents().head);
  s.feature = in.v.extents().feature;
  return s;
}

/// checked_problem() of a call without `out`: the inputs determine the extents.
template <class Op, class View>
problem_shape checked_inputs(char const* function, Op const& op, inputs<Op, View> const& in,
                             memory_kind where = memory_kind::host) {
  return detail::checked_problem(function, op, in, output_shape(in), where);
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
