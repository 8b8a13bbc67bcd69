// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Programs that copy rows to where tiles can read them, and change them on the way: rotary turns, scaled and shifted
// queries, gated values; and the norms of distances. The copies are rounded to the 16 bits of the tensors.
#pragma once

#include <attune/exec/cuda/call.hpp>
#include <attune/exec/terms.hpp>

namespace attune::exec_cuda {

/// to(b, h, n, d) = feature(b, h, n, d), 8 features a task; 0 past the width.
template <class E, class Feature>
struct copy_rows_program {
  Feature feature;
  E* to;
  index_t batch, heads, positions, width, chunks;
  ATTUNE_HD index_t tasks() const { return batch * heads * positions * chunks; }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const chunk = task % chunks, n = task / chunks % positions, h = task / (chunks * positions) % heads,
                  b = task / (chunks * positions * heads);
    for (index_t d = 8 * chunk; d < 8 * chunk + 8; ++d)
      to[task * 8 + d - 8 * chunk] = d < width ? feature(b, h, n, d) : E(0.f);
  }
};

/// x itself.
template <class E>
struct plain_feature {
  tensor<E const> x;
  ATTUNE_HD E operator()(index_t b, index_t h, index_t n, index_t d) const { return x(b, h, n, d); }
};
/// Queries or keys, turned.
template <class E, class Owner, bool Keys>
struct turned_feature {
  tensor<E const> x;
  Owner owner;
  problem_shape p;
  ATTUNE_HD E operator()(index_t b, index_t h, index_t n, index_t d) const {
    auto const turns = attune::detail::turns_of<float>(owner, b, Keys ? 0 : n, p.offset_of(b), Keys ? n : 0);
    index_t const pairs = turns.pairs();
    if (d >= 2 * pairs) return x(b, h, n, d);
    index_t const r = owner.layout == rotary_layout::half ? (d < pairs ? d : d - pairs) : d / 2;
    rotary_pair const at = turns.pair(r);
    auto const by = Keys ? turns.of_key(r) : turns.of_query(r);
    float const first = float(x(b, h, n, at.first)), second = float(x(b, h, n, at.second));
    return E(d == at.first ? by.first(first, second) : by.second(first, second));
  }
};
/// The left factor of a product with a table.
template <class E, class Contraction, class Owner>
struct left_feature {
  tensor<E const> x;
  Owner owner;
  ATTUNE_HD E operator()(index_t b, index_t h, index_t n, index_t d) const {
    float const z = lift<float>{}.entry(Contraction::z::table_of::of(owner), b, h, 0, d), q = float(x(b, h, n, d));
    if constexpr (is_distance<Contraction>)
      return E(z * q);
    else
      return E(Contraction::left_type::left(q, z));
  }
};
/// Values after their gate. `each`: heads of the copy for a value head.
template <class Op, class E>
struct gated_feature {
  forward_call<Op, E> c;
  index_t each;
  ATTUNE_HD E operator()(index_t b, index_t h, index_t n, index_t d) const {
    index_t const of_values = h / each, query_head = h * (c.p.heads / (c.p.value_heads * each));
    auto const& f = c.records[c.row_number(b, query_head, 0)].bound;
    auto const shared = attune::detail::broadcast(c.in.value_gate, b, of_values, n);
    return E(float(c.in.v(b, of_values, n, d)) *
             f.value_gate.factor(float(c.in.value_gate(shared.batch, shared.head, shared.position, d))));
  }
};

/// sum_d m_d x_d^2 for the rows of q, or of k for every query head.
template <class Op, class E, class Contraction, class Owner, bool Keys>
struct norm_program {
  forward_call<Op, E> c;
  Owner owner;
  float* to;
  ATTUNE_HD index_t positions() const { return Keys ? c.p.keys : c.p.queries; }
  ATTUNE_HD index_t tasks() const { return c.p.batch * c.p.heads * positions(); }
  ATTUNE_HD void operator()(index_t task) const {
    index_t const n = task % positions(), h = task / positions() % c.p.heads, b = task / (positions() * c.p.heads);
    float sum = 0;
    for (index_t d = 0; d < c.p.width; ++d) {
      float const x = float(Keys ? c.in.k(b, c.p.group(h, c.p.key_heads), n, d) : c.in.q(b, h, n, d));
      if constexpr (std::is_same_v<Contraction, contraction::metric_distance>)
        sum += lift<float>{}.entry(Contraction::z::table_of::of(owner), b, h, 0, d) * x * x;
      else
        sum += x * x;
    }
    to[task] = sum;
  }
};

/// The values of a moving average.
struct average_program {
  parameter from;
  double* to;
  ATTUNE_HD void operator()(index_t n) const {
    shape const e = from.extents();
    to[n] = from.at(n / (e.head * e.position), n / e.position % e.head, n % e.position);
  }
};

}  // namespace attune::exec_cuda
