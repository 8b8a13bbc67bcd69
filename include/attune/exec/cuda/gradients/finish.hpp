// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The programs of a VJP that run after its tiles, and the values that they sum: gradients by prepared operands become
// gradients by inputs, and gradients by members of bound policies become gradients by parameters.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
#include <attune/exec/cuda/gradients/reduce.hpp>
#include <attune/exec/terms.hpp>

namespace attune::exec_cuda {

/// Gradients by turned rows become gradients by the rows: the transposed turns, in place. Task: a pair of features.
template <class E, class Owner, bool Keys>
struct turn_back_program {
  row_target<E> rows;
  Owner owner;
  problem_shape p;
  ATTUNE_HD index_t tasks() const { return p.batch * rows.heads * rows.positions * (rows.width / 2); }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const r = task % (rows.width / 2), row = task / (rows.width / 2), n = row % rows.positions,
                  b = row / (rows.positions * rows.heads);
    auto const turns = attune::detail::turns_of<float>(owner, b, Keys ? 0 : n, p.offset_of(b), Keys ? n : 0);
    if (r >= turns.pairs()) return;
    rotary_pair const at = turns.pair(r);
    auto const by = Keys ? turns.of_key(r) : turns.of_query(r);
    float &x = rows.parts[row * rows.width + at.first], &y = rows.parts[row * rows.width + at.second];
    float const first = by.first(1.f, 0.f) * x + by.second(1.f, 0.f) * y,
                second = by.first(0.f, 1.f) * x + by.second(0.f, 1.f) * y;
    x = first;
    y = second;
  }
};
/// The factors of a gradient by left factors of a product with a table: Table: d left / d entry, else d left / d query.
template <class E, class Contraction, class Owner, bool Table>
struct left_slope {
  Owner owner;
  tensor<E const> x;  ///< the queries
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    using D = dual<float, 1>;
    D q(float(x(b, h, n, d))), z(lift<float>{}.entry(Contraction::z::table_of::of(owner), b, h, 0, d));
    (Table ? z : q).tangent[0] = 1;
    return Contraction::left_type::left(q, z).tangent[0];
  }
};
/// The gradients by the left factors of a row, times a slope of the factors.
template <class E, class Slope>
struct left_value {
  row_target<E> rows;
  Slope slope;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    return rows.part(b, h, n, d) * slope(b, h, n, d);
  }
};
/// Every part of `rows` becomes value(b, h, n, d), which may read it.
template <class E, class Value>
struct change_parts_program {
  row_target<E> rows;
  Value value;
  index_t batch;
  ATTUNE_HD index_t tasks() const { return batch * rows.heads * rows.positions * rows.width; }
  ATTUNE_HD void operator()(index_t task) const {
    element_place const at(task, {batch, rows.heads, rows.positions, rows.width});
    rows.parts[task] = value(at.b, at.h, at.n, at.d);
  }
};

/// The number of a metric, 1 without one.
template <class Contraction, class Owner>
ATTUNE_HD float metric_of([[maybe_unused]] Owner const& owner, [[maybe_unused]] index_t b, [[maybe_unused]] index_t h,
                          [[maybe_unused]] index_t d) {
  if constexpr (std::is_same_v<Contraction, contraction::metric_distance>)
    return lift<float>{}.entry(Contraction::z::table_of::of(owner), b, h, 0, d);
  else
    return 1;
}
/// The gradient by one side of the distances sum_d m_d (q_d - k_d)^2, from sums over products. `sums`: of the gradients
/// by the distances of each row.
template <class E, class Contraction, class Owner, bool Keys>
struct distance_value {
  row_target<E> rows, sums;
  Owner owner;
  tensor<E const> x;  ///< the queries or keys
  problem_shape p;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    float const own = float(x(b, h * x.extents().head / rows.heads, n, d)), sum = sums.part(b, h, n, 0),
                m = metric_of<Contraction>(owner, b, h * p.heads / rows.heads, d), part = rows.part(b, h, n, d);
    return 2.f * (Keys ? m * own * sum - part : m * (own * sum - part));  // the metric is in the queries
  }
};
/// The gradient by the metric of distances, as a sum over queries and then keys.
template <class E>
struct metric_value {
  row_target<E> queries, of_queries, of_keys;  ///< sums over products; sums of the gradients by distances
  tensor<E const> q, k;
  index_t heads;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    if (n < queries.positions) {
      float const x = float(q(b, h, n, d));
      return x * (x * of_queries.part(b, h, n, 0) - 2.f * queries.part(b, h, n, d));
    }
    index_t const each = heads / of_keys.heads, j = n - queries.positions;
    if (h % each != 0) return 0;  // the heads of a group have one sum
    float const y = float(k(b, h * k.extents().head / heads, j, d));
    return y * y * of_keys.part(b, h / each, j, 0);
  }
};
/// The sums of the gradients by the pairs of a distance.
template <class E>
struct diagonal_sum_program {
  pair_target<E> from;
  double* to;  ///< batch, heads, Lq + Lk - 1
  ATTUNE_HD index_t count() const { return from.queries + from.keys - 1; }
  ATTUNE_HD index_t tasks() const { return from.batch * from.heads * count(); }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const apart = task % count() - (from.keys - 1), h = task / count() % from.heads,
                  b = task / (count() * from.heads), last = apart + from.keys;
    double sum = 0;
    for (index_t i = apart > 0 ? apart : 0; i < from.queries && i < last; ++i)
      sum += double(from.part(b, h, i, i - apart));
    to[task] = sum;
  }
};
/// The gradient by a table with a number for each distance.
template <class Table, class Owner>
struct distance_table_program {
  double const* from;
  index_t batch, heads;
  Owner owner;
  problem_shape p;
  tensor<float> to;
  ATTUNE_HD index_t tasks() const { return to.extents().size(); }
  ATTUNE_HD void operator()(index_t task) const {
    shape const e = to.extents();
    element_place const at(task, e);
    index_t const batches = batch / e.batch, each = heads / e.head, count = p.queries + p.keys - 1;
    double sum = 0;
    for (index_t b = at.b * batches; b < (at.b + 1) * batches; ++b)
      for (index_t h = at.h * each; h < (at.h + 1) * each; ++h)
        for (index_t t = 0; t < count; ++t)
          if (Table::row(owner, t - (p.keys - 1) + p.offset_of(b)) == at.n) sum += from[(b * heads + h) * count + t];
    to(at.b, at.h, at.n, at.d) = float(sum);
  }
};

/// The sum of the parts of `heads` heads.
template <class E, int Most>
struct sum_of_parts {
  row_target<E> from[Most];
  int count;
  index_t heads;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    float sum = 0;
    for (int k = 0; k < count; ++k) {
      index_t const each = from[k].heads / heads;
      for (index_t g = h * each; g < (h + 1) * each; ++g) sum += from[k].part(b, g, n, d);
    }
    return sum;
  }
};
/// The gradient by a value or by its gate, from the gradients by gated values. `copies`: heads of these for a head of
/// values.
template <class Op, class E, bool Gate>
struct value_gate_value {
  gradient_call<Op, E> c;
  index_t copies;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    auto const& p = c.forward.p;
    row_target<E> const& from = c.by_value;
    index_t const each = from.heads / (p.value_heads * copies);
    float const v = Gate ? float(c.forward.in.v(b, h, n, d)) : 1.f;
    float const x = attune::detail::shared_element<float>(c.forward.in.value_gate, b, h, n, d);
    float sum = 0;
    for (index_t copy = h * copies; copy < (h + 1) * copies; ++copy) {
      index_t const query_head = copy * (p.heads / (p.value_heads * copies));
      auto const& bound = c.forward.records[c.forward.row_number(b, query_head, 0)].bound.value_gate;
      auto const factor = in_direction<Gate>(bound, query_head, b, x);
      float gain = 0;
      for (index_t g = copy * each; g < (copy + 1) * each; ++g) gain += from.part(b, g, n, d);
      sum += Gate ? attune::detail::chained(v * gain, factor) : gain * factor;
    }
    return sum;
  }

 private:
  template <bool Slope, class Bound>
  ATTUNE_HD float in_direction(Bound const& bound, index_t h, index_t b, float x) const {
    if constexpr (Slope) {
      using D = dual<float, 1>;
      auto const facts = attune::detail::row_of_count<float>(c.forward.p, 0, b, h, 0);
      return c.forward.op.value_gate.bind(lifted(facts, lift<D>{})).factor(D::variable(x, 0)).tangent[0];
    } else {
      return bound.factor(x);
    }
  }
};

/// The gradient by the ground value of a row.
template <class Op, class E>
struct ground_value {
  gradient_call<Op, E> c;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    return c.d_out.absent() ? 0.f : c.ends[c.forward.row_number(b, h, n)].ground_weight * float(c.d_out(b, h, n, d));
  }
};

/// The cotangents before the output gate.
template <class Op, class E>
struct opened_feature {
  forward_call<Op, E> c;
  tensor<E const> given;
  ATTUNE_HD E operator()(index_t b, index_t h, index_t n, index_t d) const {
    auto const& f = c.records[c.row_number(b, h, n)].bound;
    index_t const at = c.p.output_gate_width == 1 ? index_t(0) : d;
    return E(float(given(b, h, n, d)) *
             float(f.output_gate.factor(attune::detail::shared_element<float>(c.in.output_gate, b, h, n, at))));
  }
};
/// The gradients by the output gate of a row, and by the parameters that the gate reads.
template <class Op, class E>
struct output_gate_gains {
  static constexpr int parameters = parameter_count<Op>;
  using D = dual<float, 1 + parameters>;
  gradient_call<Op, E> c;
  tensor<E const> given;  ///< the cotangents of the call

  /// The gradient by number d of the gate's input: all features where it is the only one.
  ATTUNE_HD float operator()(index_t b, index_t h, index_t n, index_t d) const {
    index_t const width = c.forward.p.value_width;
    bool const one = c.forward.p.output_gate_width == 1;
    float sum = 0;
    each(b, h, n, one ? 0 : d, one ? width : d + 1,
         [&](float gain, D const& factor) { sum += attune::detail::chained(gain, factor.tangent[0]); });
    return sum;
  }
  ATTUNE_HD void add_parameters(index_t b, index_t h, index_t n, float* to) const {
    each(b, h, n, 0, c.forward.p.value_width, [&](float gain, D const& factor) {
      for (int s = 0; s < parameters; ++s) to[s] += attune::detail::chained(gain, factor.tangent[1 + s]);
    });
  }

 private:
  /// visit(do_d times feature d before the gate, factor) for features [from, until).
  template <class Visit>
  ATTUNE_HD void each(index_t b, index_t h, index_t n, index_t from, index_t until, Visit const& visit) const {
    auto const& p = c.forward.p;
    if (given.absent()) return;
    index_t const row = c.forward.row_number(b, h, n);
    row_end const end = c.ends[row];
    auto const facts = attune::detail::row_of_count<float>(p, index_t(c.forward.records[row].visible), b, h, n);
    auto const gate = c.forward.op.output_gate.bind(lifted(facts, lift<D>{{}, {0, parameters, 1}}));
    for (index_t d = from; d < until; ++d) {
      float out = c.saved.acc[row * p.value_width + d] * end.value_factor;
      if constexpr (tile_facts<Op>::second) out += c.saved.second[row * p.value_width + d] * end.share;
      if constexpr (Op::uses(field::v0))
        out += end.ground_weight * attune::detail::shared_element<float>(c.forward.in.v0, b, h, n, d);
      index_t const at = p.output_gate_width == 1 ? index_t(0) : d;
      D const x = D::variable(attune::detail::shared_element<float>(c.forward.in.output_gate, b, h, n, at), 0);
      visit(float(given(b, h, n, d)) * out, gate.factor(x));
    }
  }
};

/// Adds to the gradients by the parameters of row n what its keys and its output gate contribute.
template <class Op, class E>
struct chain_parameters_program {
  static constexpr int parameters = parameter_count<Op>;
  using sums = member_sums<Op>;
  using D = dual<float, parameters>;
  gradient_call<Op, E> c;
  tensor<E const> given;  ///< the cotangents of the call

  ATTUNE_HD index_t tasks() const { return c.forward.p.batch * c.forward.p.heads * c.forward.p.queries; }
  ATTUNE_HD void operator()(index_t n) const {
    auto const& p = c.forward.p;
    Op const& op = c.forward.op;
    index_t const i = n % p.queries, h = n / p.queries % p.heads, b = n / (p.queries * p.heads);
    auto const facts = attune::detail::row_of_count<float>(p, index_t(c.forward.records[n].visible), b, h, i);
    row<D> const moving = lifted(facts, lift<D>{{}, {0, parameters, 0}});
    auto const f = op.bind(moving);
    float const* const by = c.by_member + n * sums::size;
    float* const to = c.by_parameter + n * parameters;
    auto const along = [&](float gradient, D const& x) {
      for (int s = 0; s < parameters; ++s) to[s] += attune::detail::chained(gradient, x.tangent[s]);
    };
    if constexpr (gradient_facts<Op>::affine) {
      D x[2] = {D(0.f), D(0.f)};
      key<D> const first{D(0.f)};
      D const level = f.logit(x, first);
      x[0] = D(0x1p20f);
      along(by[0], (f.logit(x, first) - level) * D(0x1p-20f));
      along(by[1], level);
    } else {
      add_logit_parameters(op, moving, by, to);
    }
    if constexpr (!gradient_facts<Op>::fused)
      add_by_parameters<typename Op::normalizer_policy, float, parameters, chain_rule::guarded>(
          op.normalizer, f.normalizer, by + sums::logit, to);
    else if constexpr (sums::normalizer != 0)
      along(by[sums::logit], f.normalizer.lowest_reference());
    add_by_parameters<typename Op::weight_gate_policy, float, parameters, chain_rule::guarded>(
        op.weight_gate, f.weight_gate, by + sums::logit + sums::normalizer, to);
    if constexpr (attune::detail::count_of<typename Op::output_gate_policy>::parameters > 0)
      output_gate_gains<Op, E>{c, given}.add_parameters(b, h, i, to);
  }
};
/// The gradient by parameter `s` of a row.
struct parameter_value {
  float const* rows;
  problem_shape p;
  int parameters, s;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t i, index_t) const {
    return rows[((b * p.heads + h) * p.queries + i) * parameters + s];
  }
};
/// The gradient by a pair's number, of parts.
template <class E>
struct pair_value {
  pair_target<E> from;
  ATTUNE_HD float operator()(index_t b, index_t h, index_t i, index_t j) const { return from.part(b, h, i, j); }
};

}  // namespace attune::exec_cuda
