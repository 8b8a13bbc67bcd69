// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The programs of a VJP that run after its tiles: they turn gradients by prepared operands into gradients by inputs.
#pragma once

#include <attune/exec/cuda/gradients/call.hpp>
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
/// Gradients by the left factors of a product with a table become gradients by the queries, in place.
template <class E, class Contraction, class Owner>
struct left_slope_program {
  row_target<E> rows;
  Owner owner;
  tensor<E const> x;  ///< the queries
  index_t batch;
  ATTUNE_HD index_t tasks() const { return batch * rows.heads * rows.positions * rows.width; }
  ATTUNE_HD void operator()(index_t task) const {
    using D = dual<float, 1>;
    index_t const d = task % rows.width, n = task / rows.width % rows.positions,
                  h = task / (rows.width * rows.positions) % rows.heads,
                  b = task / (rows.width * rows.positions * rows.heads);
    float const z = lift<float>{}.entry(Contraction::z::table_of::of(owner), b, h, 0, d);
    rows.parts[task] *= Contraction::left_type::left(D::variable(float(x(b, h, n, d)), 0), D(z)).tangent[0];
  }
};

/// to(b, h, n, d) = the sum of the parts of its head, in order.
template <class E, int Most>
struct sum_parts_program {
  row_target<E> from[Most];
  int count;
  tensor<E> to;
  ATTUNE_HD index_t tasks() const { return to.extents().size(); }
  ATTUNE_HD void operator()(index_t task) const {
    shape const e = to.extents();
    index_t const d = task % e.feature, n = task / e.feature % e.position, h = task / (e.feature * e.position) % e.head,
                  b = task / (e.feature * e.position * e.head);
    float sum = 0;
    for (int k = 0; k < count; ++k) {
      row_target<E> const& x = from[k];
      index_t const each = x.heads / e.head;
      for (index_t g = h * each; g < (h + 1) * each; ++g)
        sum += x.parts[((b * x.heads + g) * x.positions + n) * x.width + d];
    }
    to(b, h, n, d) = E(sum);
  }
};

}  // namespace attune::exec_cuda
