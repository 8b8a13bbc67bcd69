// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = sum_d m_d (q_d - k_d)^2
//
// contraction::metric_distance.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/feature_sum.hpp>

namespace attune::exec_cpu {

template <class T>
struct metric_distance_step {
  T const* metric;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    B const difference = q - x;
    return simd::multiply_add(B(B(metric[d]) * difference), difference, acc);
  }
};

template <class T, class Arch>
struct contractor<contraction::metric_distance, T, Arch>
    : detail::operand_contractor<contraction::metric_distance, T, Arch> {
  using base = detail::operand_contractor<contraction::metric_distance, T, Arch>;
  template <class In, class Owner>
  static void run(T* to, typename base::packed const& own, In const& in, Owner const&, tile_place const& at,
                  key_block_place const& block, typename base::copies const& memory) {
    base::by_steps(to, own.q, in, at, block, memory, metric_distance_step<T>{own.metric});
  }
};

template <class T, class Arch>
struct contraction_vjp<contraction::metric_distance, T, Arch>
    : detail::feature_sum_vjp<contraction::metric_distance, T, Arch> {
  using base = detail::feature_sum_vjp<contraction::metric_distance, T, Arch>;
  struct grown : base::grown {
    T *by_metric,  ///< lane by lane
        *twice;    ///< twice the metric, padded
    grown(arena<T>& from, problem_shape const& p)
        : base::grown(from, p), by_metric(from.take(base::queries * p.width)),
          twice(from.take(base::tile_panels::padded_width(p.width))) {}
  };
  template <class Tile, class In, class Owner>
  static void begin(Tile const& t, In const& in, Owner const& owner) {
    index_t const width = t.place.p->width;
    base::begin(t, in, owner);
    std::fill_n(t.grown.by_metric, base::queries * width, T(0));
    std::fill_n(t.grown.twice, base::tile_panels::padded_width(width), T(0));
    for (index_t d = 0; d < width; ++d) t.grown.twice[d] = T(2) * T(owner.metric(t.place.b, t.place.h, 0, d));
  }
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const& in, Owner const&, key_block_place const& b,
                   typename base::scratch const& memory, gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, memory, to, t.grown.twice, [](auto const& q, auto const& k) { return q - k; },
        [](auto const& q, auto const& k) { return k - q; });
    accumulate_pairs<T, Arch>(t.grown.by_metric, base::keys(in, t, b, memory.keys), ds, t.packed.q, b.n,
                              t.place.p->width, [](auto const& q, auto const& k) { return (q - k) * (q - k); });
  }
  template <class Tile, class In, class Owner>
  static void end(Tile const& t, In const&, Owner const& owner, gradient_sinks<T>& to) {
    gradient_array<double>& metric = to.sum_of(owner.metric);
    base::flush(
        t, to, [&](index_t d) { return t.grown.twice[d]; },
        [&](index_t d, index_t l, T const&) {
          metric(0, 0, 0, d) += double(t.grown.by_metric[d * base::queries + l]);
        });
  }
};

namespace detail {

/// The metric is stored feature by feature, as the keys are.
template <class T>
struct decode_metric_step {
  T const* metric;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    B const difference = q - x;
    return simd::multiply_add(B(B::load_aligned(metric + d) * difference), difference, acc);
  }
};

}  // namespace detail

/// Each head has its own metric, so rows of different heads are different products.
template <class T, class Arch>
struct decode_contractor<contraction::metric_distance, T, Arch>
    : detail::decode_features<contraction::metric_distance, T, Arch> {
  using base = detail::decode_features<contraction::metric_distance, T, Arch>;
  struct packed : base::packed {
    T* metric;  ///< [row][d]
    packed(arena<T>& from, problem_shape const& p, index_t rows)
        : base::packed(from, p, rows), metric(from.take(rows * base::whole(p))) {}
  };
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, decode_place const& at) {
    base::pack(to, in, owner, at);
    index_t const whole = base::whole(*at.p);
    for (index_t r = 0; r < at.rows; ++r)
      for (index_t d = 0; d < whole; ++d)
        to.metric[r * whole + d] = d < at.p->width ? T(owner.metric(at.b, at.head_of(r), 0, d)) : T(0);
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const& in, Owner const&, decode_place const& at,
                  key_block_place const& block, typename base::copies const& memory) {
    index_t const whole = base::whole(*at.p), head = at.p->group(at.head, at.p->key_heads);
    with_whole_rows<T, Arch>(
        feature_rows<field::k>(in), at.b, head, block.first, block.n, memory.keys, [&](auto const* from, index_t step) {
          for (index_t r = 0; r < at.rows; ++r)
            contract_features<T, Arch>(to + r * decode_tiling<T, Arch>::block, own.q + r * whole, 1, whole, from, step,
                                       block.n, r == 0 ? at.values : prefetch_range{},
                                       detail::decode_metric_step<T>{own.metric + r * whole});
        });
  }
};

}  // namespace attune::exec_cpu
