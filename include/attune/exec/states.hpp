// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   part = accumulate(exec, op, inputs, keys);   whole = merge(part, part);   finish(exec, op, inputs, whole, outputs)
//
// The states of all rows of a call. Split-KV decode, ring attention and reductions across processes exchange them.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/problem.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/candidates.hpp>

namespace attune {

/// States of (B, H, Lq) rows with an O(1) state, row-major. Plain arrays: you can send them as they are. Array: a
/// std::vector, or a std::span of the caller's memory.
template <class T, class Normalizer, class Array = std::vector<T>>
struct row_states {
  /// Whether `second` is used.
  static constexpr bool has_second = row_state<T>::template has_second<Normalizer>;
  problem_shape extents;  ///< of the call
  Array reference,        ///< B H Lq: the shift subtracted before exponentials
      earned,             ///< B H Lq: sum of the masses of the keys
      ground;             ///< B H Lq: sum of the ground masses
  Array lowest;           ///< B H Lq, for family range_weighted
  Array acc;              ///< B H Lq Dv
  Array second;           ///< B H Lq Dv, if the normalizer needs it (operators/row_state.hpp)

  row_states() = default;
  /// Zeros for the rows of a call, to be filled by a forward pass.
  template <class Op>
  row_states(Op const&, problem_shape const& p)
      : extents(p), reference(std::size_t(p.batch * p.heads * p.row_count()), T(0)), earned(reference),
        ground(reference), lowest(reference.size(), math::infinity<T>()),
        acc(reference.size() * std::size_t(p.value_width), T(0)), second(has_second ? acc.size() : 0, T(0)) {}

  /// Each array, in the order in which they lie in one piece of memory.
  template <class Rows, class F>
  static void each_array(Rows& rows, F const& f) {
    index_t const n = rows.extents.batch * rows.extents.heads * rows.extents.row_count(),
                  values = n * rows.extents.value_width;
    f(rows.reference, n), f(rows.earned, n), f(rows.ground, n), f(rows.lowest, n), f(rows.acc, values);
    if (has_second) f(rows.second, values);
  }

  /// The index of row (b, h, i).
  index_t at(index_t b, index_t h, index_t i) const {
    return (b * extents.heads + h) * extents.row_count() + i - extents.first_query;
  }

  /// A copy of the state of row n; not checked.
  ATTUNE_NOINLINE row_state<T> load(index_t n) const {
    auto const u = std::size_t(n);
    auto const rows = [&](Array const& x) {
      if (x.empty()) return std::vector<T>();
      auto const begin = x.begin() + n * extents.value_width;
      return std::vector<T>(begin, begin + extents.value_width);
    };
    return {reference[u], earned[u], ground[u], lowest[u], rows(acc), rows(second)};
  }
  /// The same, but the values are spans into this object. The numbers are copies: `store_numbers` writes them back.
  row_state<T, std::span<T>> in_place(index_t n) {
    auto const u = std::size_t(n), width = std::size_t(extents.value_width);
    auto const rows = [&](Array& x) { return x.empty() ? std::span<T>() : std::span<T>(x).subspan(u * width, width); };
    return {reference[u], earned[u], ground[u], lowest[u], rows(acc), rows(second)};
  }
  /// Writes the numbers of a state to row n, but not its values.
  template <class Values>
  void store_numbers(index_t n, row_state<T, Values> const& s) {
    auto const u = std::size_t(n);
    reference[u] = s.reference;
    earned[u] = s.earned;
    ground[u] = s.ground;
    lowest[u] = s.lowest;
  }
  /// Writes a state to row n.
  void store(index_t n, row_state<T> const& s) {
    store_numbers(n, s);
    auto const put = [&](std::vector<T> const& from, Array& to) {  // empty: nowhere to copy to
      if (!to.empty()) std::copy(from.begin(), from.end(), to.begin() + n * extents.value_width);
    };
    put(s.acc, acc);
    put(s.second, second);
  }
};

/// States of (B, H, Lq) rows with a candidate set. Each row holds the logits above its threshold, with their keys and
/// values. The size is bounded by the largest support of a part; it is not O(1).
template <class T, class Normalizer>
struct candidate_states {
  /// A key that may have weight.
  struct candidate {
    T logit;               ///< without the row constant
    index_t key;           ///< its position
    std::vector<T> value;  ///< Dv numbers
  };
  /// The normalizer, bound to a row.
  using bound = decltype(std::declval<Normalizer const&>().bind(std::declval<row<T> const&>()));

  problem_shape extents;                     ///< of the call
  std::vector<std::vector<candidate>> rows;  ///< B H Lq
  std::vector<T> poisons;                    ///< 0, or NaN if a logit was NaN or +inf
  std::vector<bound> normalizers;            ///< decides the threshold of each row

  candidate_states() = default;
  /// Rows without candidates, with the normalizers of an operator.
  template <class Op>
  candidate_states(Op const& op, problem_shape const& p)
      : extents(p), rows(std::size_t(p.batch * p.heads * p.row_count())), poisons(rows.size(), T(0)) {
    normalizers.reserve(rows.size());
    for (index_t b = 0; b < p.batch; ++b)
      for (index_t h = 0; h < p.heads; ++h)
        for (index_t i = p.first_query; i < p.queries; ++i)
          normalizers.push_back(op.bind(detail::scalar_row<T>(p, op.mask, b, h, i)).normalizer);
  }

  /// The index of row (b, h, i).
  index_t at(index_t b, index_t h, index_t i) const {
    return (b * extents.heads + h) * extents.row_count() + i - extents.first_query;
  }
  /// Adds a candidate to row (b, h, i); value(d) is feature d of its value.
  template <class Value>
  void add(index_t b, index_t h, index_t i, T const& logit, index_t key, Value const& value) {
    candidate c{logit, key, {}};
    for (index_t d = 0; d < extents.value_width; ++d) c.value.push_back(value(d));
    rows[std::size_t(at(b, h, i))].push_back(std::move(c));
  }
  /// Adds x, 0 or NaN, to `poisons`: NaN makes the whole row NaN.
  void poison(index_t b, index_t h, index_t i, T const& x) {
    T& to = poisons[std::size_t(at(b, h, i))];
    to = to + x;
  }

  /// The threshold of row n, computed from its candidates.
  candidate_threshold<T> level(std::size_t n) const {
    std::vector<T> logits;
    std::vector<index_t> keys;
    for (candidate const& c : rows[n]) {
      logits.push_back(c.logit);
      keys.push_back(c.key);
    }
    candidate_column<T> column(std::move(logits), std::move(keys));
    return normalizers[n].solve(column);
  }
  /// Drops candidates below the row's own threshold, less its rounding. More keys only raise the threshold.
  void prune(std::size_t n) {
    if (rows[n].empty() || !(poisons[n] == T(0))) return;
    candidate_threshold<T> const at = detail::rounded_down(level(n));
    std::erase_if(rows[n], [&](candidate const& c) {
      return normalizers[n].weight(at, c.logit, key<T>{T(double(c.key))}) == T(0);
    });
  }
};

namespace detail {
/// Fails to compile, with a readable message, if the states of parts of the keys do not merge.
template <class Op>
constexpr void require_mergeable() {
  static_assert(!Op::contractions::has_derived,
                "attune: accumulate(): an ordered sum needs the sum over the keys of the other parts: use forward(). "
                "See docs/reference/policies.md#ordered-sums");
}
}  // namespace detail

/// The states of an operator's rows.
template <class T, class Op>
using states_of = std::conditional_t<Op::normalizer_is.family == row_family::sparse_support,
                                     candidate_states<T, typename Op::normalizer_policy>,
                                     row_states<T, typename Op::normalizer_policy>>;

namespace detail {

/// The extents (B, H, Lq, Dv) of the rows that a state describes.
template <class States>
shape rows_of(States const& s) {
  return {s.extents.batch, s.extents.heads, s.extents.row_count(), s.extents.value_width};
}
template <class States>
void require_same_rows(States const& a, States const& b) {
  shape const first = rows_of(a), second = rows_of(b);
  if (!(first == second))
    throw error("merge", "the second state", detail::text("rows of shape ", to_string(second)),
                detail::text(to_string(first), ", as the first"));
}

/// a = the merged states of a and b, of the same rows. Afterwards the values in b are relative to the references of a.
template <class T, class Normalizer>
ATTUNE_NOINLINE void merge_in_place(row_states<T, Normalizer>& a, row_states<T, Normalizer>& b) {
  for (index_t n = 0; n < index_t(a.reference.size()); ++n) {
    auto s = a.in_place(n);
    s.template merge<Normalizer>(b.in_place(n));
    a.store_numbers(n, s);
  }
}

}  // namespace detail

/// The states of both sets of keys. Throws attune::error unless both belong to calls with the same extents.
template <class T, class Normalizer>
row_states<T, Normalizer> merge(row_states<T, Normalizer> a, row_states<T, Normalizer> b) {
  detail::require_same_rows(a, b);
  detail::merge_in_place(a, b);
  return a;
}
/// The same for candidate sets, which must not share a key. The result is exact and pruned again.
template <class T, class Normalizer>
candidate_states<T, Normalizer> merge(candidate_states<T, Normalizer> a, candidate_states<T, Normalizer> const& b) {
  detail::require_same_rows(a, b);
  for (std::size_t n = 0; n < a.rows.size(); ++n) {
    a.rows[n].insert(a.rows[n].end(), b.rows[n].begin(), b.rows[n].end());
    a.poisons[n] = a.poisons[n] + b.poisons[n];
    a.prune(n);
  }
  return a;
}

namespace detail {

/// One finished row: out before v0 and the output gate, and the other numbers of the row.
template <class T>
struct state_row {
  std::vector<T> out;
  T ground_weight = T(0), lse = T(0), threshold = T(0);
};

template <class Normalizer, class T, class Kind, class Array, class Bound>
state_row<T> finish_row(row_states<T, Kind, Array> const& states, index_t n, Bound const& f, T const& visible) {
  row_state<T> s = states.load(n);
  auto const done = finish_state<Normalizer>(s, f.normalizer, visible);
  return {std::move(s.acc), done.ground_weight, done.lse, T(0)};
}

template <class Normalizer, class T, class Bound>
state_row<T> finish_row(candidate_states<T, Normalizer> const& states, index_t n, Bound const&, T const&) {
  auto const u = std::size_t(n);
  candidate_threshold<T> const at = states.level(u);
  state_row<T> r{std::vector<T>(std::size_t(states.extents.value_width), T(0))};
  T sum(0);
  for (auto const& c : states.rows[u]) {
    T const w = states.normalizers[u].weight(at, c.logit, key<T>{T(double(c.key))});
    if (w == T(0)) continue;
    sum = sum + w;
    for (std::size_t d = 0; d < r.out.size(); ++d) r.out[d] = r.out[d] + w * c.value[d];
  }
  auto const done = finish_candidates(states.normalizers[u], at, sum, states.poisons[u]);
  for (T& x : r.out) x = x * done.value_factor;
  r.threshold = done.threshold;
  return r;
}

/// Turns one element of a row's value sum into one element of the output `out`: adds the ground value and applies the
/// output gate.
template <class T, class Op, class View, class Bound>
ATTUNE_HD T finished_element([[maybe_unused]] inputs<Op, View> const& in, [[maybe_unused]] problem_shape const& p,
                             [[maybe_unused]] Bound const& f, T x, [[maybe_unused]] T const& ground_weight,
                             [[maybe_unused]] index_t b, [[maybe_unused]] index_t h, [[maybe_unused]] index_t i,
                             [[maybe_unused]] index_t d) {
  if constexpr (Op::uses(field::v0)) x = x + ground_weight * shared_element<T>(in.v0, b, h, i, d);
  if constexpr (Op::has_output_gate)
    x = x * f.output_gate.factor(shared_element<T>(in.output_gate, b, h, i, p.output_gate_width == 1 ? index_t(0) : d));
  return x;
}
/// Writes the other requested outputs of a finished row: lse, ground weight, threshold. The argument `lse` is the
/// log-sum-exp of the logits without the row constant, which is added here.
template <class T, class Op, class Bound>
ATTUNE_HD void write_row_numbers([[maybe_unused]] outputs<Op, T> const& to, [[maybe_unused]] Bound const& f,
                                 [[maybe_unused]] T const& ground_weight, [[maybe_unused]] T const& lse,
                                 [[maybe_unused]] T const& threshold, [[maybe_unused]] index_t b,
                                 [[maybe_unused]] index_t h, [[maybe_unused]] index_t i) {
  if constexpr (Op::has_lse)
    if (!to.lse.values.absent()) to.lse.values(b, h, i, 0) = lse + f.logit_shift;
  if constexpr (Op::has_ground_weight)
    if (!to.ground_weight.absent()) to.ground_weight(b, h, i, 0) = ground_weight;
  if constexpr (Op::has_threshold)
    if (!to.threshold.absent()) to.threshold(b, h, i, 0) = threshold;
}

/// Divides the states and writes the outputs, of the heads for which runs(h) is true. The states belong to the
/// operator's normalizer, or to any normalizer that keeps the same sums. All arguments are already checked.
template <class T, class Op, class View, class States, class Runs>
void finish_rows(Op const& op, inputs<Op, View> const& in, problem_shape const& p, States const& states,
                 outputs<Op, T> const& to, Runs const& runs) {
  for (index_t b = 0; b < p.batch; ++b)
    for (index_t h = 0; h < p.heads; ++h) {
      if (!runs(h)) continue;
      for (index_t i = p.first_query; i < p.queries; ++i) {
        row<T> const r = scalar_row<T>(p, op.mask, b, h, i);
        auto const f = op.bind(r);
        auto const done = finish_row<typename Op::normalizer_policy>(states, states.at(b, h, i), f, r.visible);
        for (index_t d = 0; d < p.value_width; ++d)
          to.out(b, h, i, d) = finished_element<T>(in, p, f, done.out[std::size_t(d)], done.ground_weight, b, h, i, d);
        write_row_numbers(to, f, done.ground_weight, done.lse, done.threshold, b, h, i);
      }
    }
}
/// The same for all heads.
template <class T, class Op, class View, class States>
void finish_rows(Op const& op, inputs<Op, View> const& in, problem_shape const& p, States const& states,
                 outputs<Op, T> const& to) {
  finish_rows<T>(op, in, p, states, to, [](index_t) { return true; });
}

}  // namespace detail

/// Divides the merged states of all keys and writes the outputs. `in` holds the inputs of the whole problem: v0, the
/// output gate and the number of visible keys come from it. The sink's mass enters here, once.
template <class T, class Op, class View>
void finish(Op const& op, inputs<Op, View> const& in, states_of<T, Op> const& states, outputs<Op, T> const& to) {
  problem_shape const p = detail::checked_problem("finish", op, in, to.out.extents());
  detail::check_outputs("finish", to, p);
  if (!(detail::rows_of(states) == to.out.extents()))
    throw error("finish", "states", detail::text("rows of shape ", to_string(detail::rows_of(states))),
                detail::text(to_string(to.out.extents()), ", the shape of out"));
  detail::finish_rows<T>(op, in, p, states, to);
}

/// Overload with the arguments of forward. The executor determines the types, so inputs and outputs may be braced
/// lists.
template <class Exec, class Op>
void finish(Exec const&, Op const& op, inputs<Op, typename Exec::view> const& in,
            states_of<typename Exec::value_type, Op> const& states, outputs<Op, typename Exec::value_type> const& to) {
  finish<typename Exec::value_type>(op, in, states, to);
}

}  // namespace attune
