// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   dq_i = sum_j dx_ij dx/dq      dk_j = sum_i dx_ij dx/dk      dv_j = sum_i w_ij do_i
//
// Each task owns what it writes: a row, a key, a distance, an entry of a table. No two tasks add to the same number. So
// no atomics are needed, and the bits are the same on every run.
#pragma once

#include <attune/exec/thrust/gradients/gradient_rows.hpp>

namespace attune::exec_thrust {

/// The gradient before the output gate: do times the gate's factor.
template <class T, class Op>
struct open_gate_program {
  served_problem<T, Op> at;
  tensor<T const> given;
  tensor<T> to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, at.p, 1);
    if (!at.serves(t.h)) return;
    row_pairs<T, Op> const pairs{at, t.b, t.h, t.i};
    auto const f = at.op.bind(pairs.facts());
    for (index_t d = 0; d < at.p.value_width; ++d)
      to(t.b, t.h, t.i, d) = given(t.b, t.h, t.i, d) *
                             f.output_gate.factor(attune::detail::shared_element<T>(
                                 at.in.output_gate, t.b, t.h, t.i, at.p.output_gate_width == 1 ? index_t(0) : d));
  }
};

/// The gradients of the output gate and of its parameters. Needs the row's output, so computes it again.
template <class T, class Op>
struct output_gate_program {
  gradient_call<T, Op> call;
  tensor<T const> given;
  tensor<T> to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    constexpr int parameters = parameter_count<Op>;
    using D = dual<T, 1 + parameters>;
    problem_shape const& p = call.at.p;
    row_task const t(n, p, 1);
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    auto const facts =
        attune::detail::row_of_count<T>(p, call.records[call.row_number(t.b, t.h, t.i)].visible, t.b, t.h, t.i);
    auto const gate = call.at.op.output_gate.bind(lifted(facts, lift<D>{{}, {0, parameters, 1}}));
    T* const by_parameter = call.row_parameters + call.row_number(t.b, t.h, t.i) * parameters;
    for (index_t first = 0; first < p.value_width; first += stretch) {
      auto const done = result_of_row(row.view, row.f, facts.visible, first);
      ATTUNE_UNROLL
      for (int n_d = 0; n_d < stretch; ++n_d) {
        index_t const d = first + n_d, at = p.output_gate_width == 1 ? index_t(0) : d;
        if (d >= p.value_width) continue;
        T out = done.out.x[n_d];
        if constexpr (Op::uses(field::v0))
          out = out + done.ground_weight * attune::detail::shared_element<T>(call.at.in.v0, t.b, t.h, t.i, d);
        D const factor =
            gate.factor(D::variable(attune::detail::shared_element<T>(call.at.in.output_gate, t.b, t.h, t.i, at), 0));
        T const gain = given(t.b, t.h, t.i, d) * out;
        T& sum = to(t.b, t.h, t.i, at);
        sum = sum + gain * factor.tangent[0];
        for (int s = 0; s < parameters; ++s)
          by_parameter[s] = by_parameter[s] + attune::detail::chained(gain, factor.tangent[1 + s]);
      }
    }
  }
};

/// The gradients of parameters from a row's pairs, and the gradients of inputs with a slot per pair.
template <class T, class Op>
struct pairs_program {
  gradient_call<T, Op> call;
  tensor<T> by_pairs[pair_fields];  ///< by inputs with a number for each pair; absent if the operator does not read one

  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    using gradients = row_gradients<T, Op, true>;
    constexpr int parameters = gradients::parameters;
    row_task const t(n, call.at.p, 1);
    if (!call.at.serves(t.h)) return;
    gradients const row(call, t.b, t.h, t.i);
    T sum[parameters + 1];
    for (int s = 0; s < parameters; ++s) sum[s] = T(0);
    row.view.for_each_key([&](index_t j) {
      auto const pair = row(j, sum);
      row.view.each_contraction([&](auto c, auto const& owner, auto number) {
        pull_pair<decltype(c), 0>(row, owner, pair.by_contraction[decltype(number)::value], t, j);
        pull_pair<decltype(c), 1>(row, owner, pair.by_contraction[decltype(number)::value], t, j);
        pull_pair<decltype(c), 2>(row, owner, pair.by_contraction[decltype(number)::value], t, j);
      });
      if constexpr (Op::has_value_gate && attune::detail::count_of<typename Op::value_gate_policy>::parameters > 0)
        value_gate(row, pair.weight, t, j, sum);
    });
    T* const to = call.row_parameters + call.row_number(t.b, t.h, t.i) * parameters;
    for (int s = 0; s < parameters; ++s) to[s] = to[s] + sum[s];
  }

 private:
  /// Adds the gradient of operand N if the operand has a number per pair.
  template <class C, int N, class Row, class Owner>
  ATTUNE_HD void pull_pair([[maybe_unused]] Row const& row, [[maybe_unused]] Owner const& owner,
                           [[maybe_unused]] T const& dx, [[maybe_unused]] row_task const& t,
                           [[maybe_unused]] index_t j) const {
    using x = operand_of<C, N>;
    if constexpr (x::side == operand_side::pair) {
      constexpr int at = pair_index(x::of);
      tensor<T> const& to = by_pairs[at];
      T& slot = to(t.b, t.h, t.i, j);
      if constexpr (contraction::Plain<C>) {
        slot = slot + dx;
      } else if (!scalar<T>::vanishes(dx)) {
        auto const slope = row.view.template slopes<C, N>(owner, j, 0);
        for (index_t d = 0; d < attune::detail::term_count<C>(call.at.p); ++d) slot = slot + dx * slope(d);
      }
    }
  }
  template <class Row>
  ATTUNE_HD void value_gate(Row const& row, T const& weight, row_task const& t, index_t j, T* sum) const {
    using D = typename Row::D;
    index_t const head = call.at.p.group(t.h, call.at.p.value_heads);
    for (index_t d = 0; d < call.at.p.value_width && !call.d_out.absent(); ++d) {
      D const factor = row.moving.value_gate.factor(
          D::variable(attune::detail::shared_element<T>(call.at.in.value_gate, t.b, head, j, d), 0));
      T const gain = weight * call.d_out(t.b, t.h, t.i, d) * T(call.at.in.v(t.b, head, j, d));
      for (int s = 0; s < Row::parameters; ++s)
        sum[s] = sum[s] + attune::detail::chained(gain, factor.tangent[Row::first + s]);
    }
  }
};

/// acc[d] += dx d x / d operand, for the operands of contraction C that `wanted` selects.
template <class C, class Wanted, class T, int Count, class Row, class Owner>
ATTUNE_HD void pull_operands(Wanted const& wanted, Row const& row, Owner const& owner, T const& dx, index_t j,
                             index_t first, index_t width, accumulators<T, Count>& acc) {
  if (scalar<T>::vanishes(dx)) return;
  ATTUNE_KEEP_HERE(first);
  auto const pull = [&](auto n) {
    constexpr int number = decltype(n)::value;
    if constexpr (Wanted::template may_want<C, operand_of<C, number>>) {
      if (!wanted.template wants<operand_of<C, number>>()) return;
      auto const slope = row.view.template slopes<C, number>(owner, j, first);
      index_t const count = width - first;
      ATTUNE_UNROLL
      for (int d = 0; d < Count; ++d) {
        if (d >= count) break;
        acc.x[d] = acc.x[d] + dx * slope(d);
      }
    }
  };
  pull(std::integral_constant<int, 0>{});
  pull(std::integral_constant<int, 1>{});
  pull(std::integral_constant<int, 2>{});
}
/// The same for contraction number Only of the pair with key j; if Only is -1, for all of them.
template <int Only, class Wanted, class T, int Count, class Row>
ATTUNE_HD void pull_from_pair(Wanted const& wanted, Row const& row, index_t j, index_t first, index_t width,
                              accumulators<T, Count>& acc) {
  auto const pair = row(j);
  row.view.each_contraction([&](auto c, auto const& owner, auto number) {
    constexpr int at = decltype(number)::value;
    if constexpr (Only < 0 || Only == at)
      pull_operands<decltype(c)>(wanted, row, owner, pair.by_contraction[at], j, first, width, acc);
  });
}
/// One of the inputs of a side. Which one is a run-time number, so the inputs share what is compiled for the pair:
/// nearly all of a program.
template <operand_side Side>
struct wanted_field {
  field which;
  template <class C, class Operand>
  static constexpr bool may_want = Operand::side == Side;
  template <class Operand>
  ATTUNE_HD bool wants() const {
    return Operand::of == which;
  }
};
template <class Contraction, class Table>
struct wanted_table {
  template <class C, class Operand>
  static constexpr bool may_want = [] {
    if constexpr (std::is_same_v<C, Contraction> && Operand::side == operand_side::table)
      return std::is_same_v<typename Operand::table_of, Table>;
    else
      return false;
  }();
  template <class Operand>
  ATTUNE_HD static constexpr bool wants() {
    return true;
  }
};

/// A row's sums over its keys of the gradients that `wanted` selects: the gradient of an input with queries, or a row's
/// part of the gradient of a table. Only: the number of one contraction, or -1 for all.
template <class T, class Op, class Wanted, int Only = -1>
struct query_program {
  gradient_call<T, Op> call;
  tensor<T> to;
  Wanted wanted;

  ATTUNE_HD index_t tasks() const { return row_task::count(call.at.p, stretches(to.extents().feature)); }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    index_t const width = to.extents().feature;
    row_task const t(n, call.at.p, stretches(width));
    if (!call.at.serves(t.h)) return;
    row_gradients<T, Op, false> const row(call, t.b, t.h, t.i);
    index_t const first = t.piece * stretch;
    accumulators<T> acc(0, T(0));
    row.view.for_each_key([&](index_t j) { pull_from_pair<Only>(wanted, row, j, first, width, acc); });
    acc.write(features(to, t.b, t.h, t.i, first), width - first);
  }
};

/// Calls visit(row, h, i) for every query of the heads of group g that sees key j.
template <class T, class Op, class Visit>
ATTUNE_HD void for_each_query(gradient_call<T, Op> const& call, index_t b, index_t g, index_t groups, index_t j,
                              Visit const& visit) {
  problem_shape const& p = call.at.p;
  for (index_t h = g * p.heads / groups; h < (g + 1) * p.heads / groups; ++h) {
    if (!call.at.serves(h)) continue;
    for (index_t i = 0; i < p.queries; ++i)
      if (mask::sees(call.at.op.mask, p.row(b, h, i), j)) visit(row_gradients<T, Op, false>(call, b, h, i), h, i);
  }
}
/// Task (b, group, piece, j): neighboring tasks are keys of one head.
struct key_task {
  index_t b, g, piece, j;
  ATTUNE_HD key_task(index_t n, problem_shape const& p, index_t groups, index_t pieces)
      : b(n / (p.keys * pieces * groups)), g(n / (p.keys * pieces) % groups), piece(n / p.keys % pieces),
        j(n % p.keys) {}
  ATTUNE_HD static index_t count(problem_shape const& p, index_t groups, index_t pieces) {
    return p.batch * groups * pieces * p.keys;
  }
};

/// The gradient of an input with keys, or a head's part of the gradient of a table with a row per key. Only: the number
/// of one contraction, or -1 for all.
template <class T, class Op, class Wanted = wanted_field<operand_side::key>, int Only = -1>
struct key_program {
  gradient_call<T, Op> call;
  tensor<T> to;
  Wanted wanted;

  ATTUNE_HD index_t tasks() const {
    return key_task::count(call.at.p, to.extents().head, stretches<key_stretch>(to.extents().feature));
  }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    index_t const width = to.extents().feature;
    key_task const t(n, call.at.p, to.extents().head, stretches<key_stretch>(width));
    index_t const first = t.piece * key_stretch;
    accumulators<T, key_stretch> acc(0, T(0));
    for_each_query(call, t.b, t.g, to.extents().head, t.j, [&](auto const& row, index_t, index_t) {
      pull_from_pair<Only>(wanted, row, t.j, first, width, acc);
    });
    acc.write(features(to, t.b, t.g, t.j, first), width - first);
  }
};

/// The gradients of values and of their gate.
template <class T, class Op>
struct value_program {
  gradient_call<T, Op> call;
  tensor<T> values, gate;

  ATTUNE_HD index_t tasks() const {
    return key_task::count(call.at.p, call.at.p.value_heads, stretches<key_stretch>(call.at.p.value_width));
  }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    problem_shape const& p = call.at.p;
    key_task const t(n, p, p.value_heads, stretches<key_stretch>(p.value_width));
    index_t const first = t.piece * key_stretch;
    accumulators<T, key_stretch> by_value(0, T(0)), by_gate(0, T(0));
    for_each_query(call, t.b, t.g, p.value_heads, t.j, [&](auto const& row, index_t h, index_t i) {
      T const weight = row(t.j).weight;
      if (Op::has_threshold && weight == T(0)) return;
      if (call.d_out.absent()) return;
      index_t from = first;
      ATTUNE_KEEP_HERE(from);
      features const d_out(call.d_out, t.b, h, i, from);
      ATTUNE_UNROLL
      for (int d = 0; d < key_stretch; ++d) {
        index_t const at = from + d;
        if (at >= p.value_width) break;
        T const move = weight * d_out[d];
        if constexpr (Op::has_value_gate) {
          using D = dual<T, 1>;
          auto const moving =
              call.at.op.value_gate.bind(lifted(attune::detail::row_of_count<T>(p, 0, t.b, h, i), lift<D>{}));
          D const factor = moving.factor(
              D::variable(attune::detail::shared_element<T>(call.at.in.value_gate, t.b, t.g, t.j, at), 0));
          by_value.x[d] = by_value.x[d] + move * factor.value;
          by_gate.x[d] = by_gate.x[d] + move * T(call.at.in.v(t.b, t.g, t.j, at)) * factor.tangent[0];
        } else {
          by_value.x[d] = by_value.x[d] + move;
        }
      }
    });
    by_value.write(features(values, t.b, t.g, t.j, first), p.value_width - first);
    if constexpr (Op::has_value_gate) by_gate.write(features(gate, t.b, t.g, t.j, first), p.value_width - first);
  }
};

/// Sums over all pairs of one distance: (B, H, Lq + Lk - 1, width) parts of the gradient of a table with a row for each
/// distance.
template <class T, class Op, class Wanted, int Only>
struct distance_program {
  gradient_call<T, Op> call;
  tensor<T> to;
  Wanted wanted;

  ATTUNE_HD index_t tasks() const {
    shape const e = to.extents();
    return e.batch * e.head * e.position * stretches(e.feature);
  }
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    problem_shape const& p = call.at.p;
    shape const e = to.extents();
    index_t const pieces = stretches(e.feature), first = n / e.position % pieces * stretch;
    index_t const distance = n % e.position, h = n / (e.position * pieces) % e.head,
                  b = n / (e.position * pieces * e.head);
    if (!call.at.serves(h)) return;
    accumulators<T> acc(0, T(0));
    for (index_t i = 0; i < p.queries; ++i) {
      index_t const j = i + (p.keys - 1) - distance;
      if (j < 0 || j >= p.keys || !mask::sees(call.at.op.mask, p.row(b, h, i), j)) continue;
      pull_from_pair<Only>(wanted, row_gradients<T, Op, false>(call, b, h, i), j, first, e.feature, acc);
    }
    acc.write(features(to, b, h, distance, first), e.feature - first);
  }
};
/// Finds the policy that named contraction number N of an operator.
template <int N>
struct owner_of_contraction {
  template <class Op>
  ATTUNE_HD static auto const& of(Op const& op) {
    return op.template owner<N>();
  }
};
/// Adds the parts of all distances that read a row of the table. Owner finds the policy that has the table.
template <class T, class Op, class Table, class Owner>
struct gather_program {
  served_problem<T, Op> at;
  tensor<T const> parts;
  tensor<T> to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    shape const e = to.extents(), from = parts.extents();
    index_t const d = n % e.feature, row = n / e.feature % e.position, g = n / (e.feature * e.position) % e.head,
                  a = n / (e.feature * e.position * e.head);
    auto const& owner = Owner::of(at.op);
    double sum = 0;
    for (index_t b = e.batch == 1 ? 0 : a; b < (e.batch == 1 ? from.batch : a + 1); ++b)
      for (index_t h = e.head == 1 ? 0 : g; h < (e.head == 1 ? from.head : g + 1); ++h)
        for (index_t t = 0; t < from.position; ++t)
          if (at.serves(h) && Table::row(owner, t - (at.p.keys - 1) + at.p.offset_of(b)) == row)
            sum += double(parts(b, h, t, d));
    to(a, g, row, d) = to(a, g, row, d) + T(sum);
  }
};

/// to(b, h, i, d) += the sum of `parts` over the axes along which `to` has extent 1; in double.
template <class T>
struct sum_program {
  tensor<T const> parts;
  tensor<T> to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    shape const e = to.extents(), from = parts.extents();
    index_t const d = n % e.feature, i = n / e.feature % e.position, h = n / (e.feature * e.position) % e.head,
                  b = n / (e.feature * e.position * e.head);
    double sum = 0;
    for (index_t x = e.batch == from.batch ? b : 0; x < (e.batch == from.batch ? b + 1 : from.batch); ++x)
      for (index_t y = e.head == from.head ? h : 0; y < (e.head == from.head ? h + 1 : from.head); ++y)
        for (index_t z = e.position == from.position ? i : 0; z < (e.position == from.position ? i + 1 : from.position);
             ++z)
          sum += double(parts(x, y, z, d));
    to(b, h, i, d) = to(b, h, i, d) + T(sum);
  }
};

/// w0 do: the part of each row in the gradient of the ground value.
template <class T, class Op>
struct ground_value_program {
  gradient_call<T, Op> call;
  tensor<T> to;
  ATTUNE_HD ATTUNE_PROGRAM void operator()(index_t n) const {
    row_task const t(n, call.at.p, 1);
    for (index_t d = 0; d < call.at.p.value_width; ++d)
      to(t.b, t.h, t.i, d) =
          call.d_out.absent() || !call.at.serves(t.h)
              ? T(0)
              : call.records[call.row_number(t.b, t.h, t.i)].is.ground_weight * call.d_out(t.b, t.h, t.i, d);
  }
};

}  // namespace attune::exec_thrust
