// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = sum_d f(q_d, k_d)
//
// Sums over features that are no products: contraction::feature_sum, squared distances among them. Gradients come from
// the derivatives of f, never from a difference of sums.
#pragma once

#include <cstdint>

#include <attune/exec/cpu/contraction/features.hpp>
#include <attune/exec/cpu/products/lanes.hpp>

namespace attune::exec_cpu {

/// The part of a distance that one feature adds.
struct distance_step {
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t) const {
    B const difference = q - x;
    return simd::multiply_add(difference, difference, acc);
  }
};
/// The part that one feature adds to any sum over the features of q and k.
template <class C>
struct feature_step {
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t) const {
    return acc + C::term(q, x, x, x);
  }
};
template <>
struct feature_step<contraction::squared_distance> : distance_step {};

namespace detail {

/// Packs all operands.
template <class C, class T, class Arch>
struct operand_contractor : feature_contractor<C, T, Arch> {
  using operands = tile_operands<C, T, Arch>;
  struct packed : operands::packed {
    T *q, *metric;  ///< the operands x and z
    packed(arena<T>& from, problem_shape const& p) : operands::packed(from, p), q(this->x.data), metric(this->z.data) {}
  };
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, tile_place const& at) {
    operands::pack(to, given<In>{in}, owner, at);
  }
};

}  // namespace detail

template <FeatureSum C, class T, class Arch>
struct contractor<C, T, Arch> : detail::operand_contractor<C, T, Arch> {
  using base = detail::operand_contractor<C, T, Arch>;
  template <class In, class Owner>
  static void run(T* to, typename base::packed const& own, In const& in, Owner const&, tile_place const& at,
                  key_block_place const& block, typename base::copies const& memory) {
    base::by_steps(to, own.q, in, at, block, memory, feature_step<C>{});
  }
};

namespace detail {

template <class C, class T, class Arch>
struct feature_sum_vjp : feature_vjp<C, T, Arch> {
  using base = feature_vjp<C, T, Arch>;
  using tile_panels = panels<T, Arch>;
  struct scratch : copied_keys<base::query, T, Arch> {
    T* panels;  ///< of the keys
    scratch(arena<T>& from, problem_shape const& p)
        : copied_keys<base::query, T, Arch>(from, p),
          panels(from.take(tile_panels::size(p.width, tiling<T, Arch>::key_block))) {}
  };
  template <class Tile, class In, class ByQuery, class ByKey>
  static void pull_pairs(T const* ds, Tile const& t, In const& in, key_block_place const& b, scratch const& memory,
                         gradient_sinks<T>& to, T const* scale, ByQuery const& by_query, ByKey const& by_key) {
    index_t const width = t.place.p->width;
    row_block<T> const keys = base::keys(in, t, b, memory.keys);
    accumulate_pairs<T, Arch>(t.grown.by_query, keys, ds, t.packed.q, b.n, width, by_query);
    key_rows<T> const& rows = to.rows(field::k);
    if (rows.data == nullptr) return;
    tile_panels::from_rows(memory.panels, keys, width, b.n);
    outer_pairs<T, Arch>(rows.at(b.first), rows.step, ds, t.grown.panels, t.count, memory.panels, b.n, width, scale,
                         by_key);
  }
};

}  // namespace detail

template <FeatureSum C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_sum_vjp<C, T, Arch> {
  using base = detail::feature_sum_vjp<C, T, Arch>;
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const& in, Owner const&, key_block_place const& b,
                   typename base::scratch const& memory, gradient_sinks<T>& to) {
    base::pull_pairs(
        ds, t, in, b, memory, to, nullptr,
        []<class B>(B const& q, B const& k) { return term(dual<B, 1>::variable(q, 0), dual<B, 1>(k)).tangent[0]; },
        []<class B>(B const& q, B const& k) { return term(dual<B, 1>(q), dual<B, 1>::variable(k, 0)).tangent[0]; });
  }

 private:
  template <class D>
  static D term(D const& q, D const& k) {
    return C::term(q, k, D(), D());
  }
};

namespace detail {

/// A feature_step for keys with contiguous features. Their padding adds nothing.
template <class C, class T, class Arch>
struct decode_feature_step {
  index_t width;
  template <class B>
  ATTUNE_INLINE B operator()(B const& x, B const& q, B const& acc, index_t d) const {
    constexpr index_t lanes = index_t(B::size);
    B const pair = C::term(q, x, x, x);
    if (d + lanes <= width) return acc + pair;
    return acc + simd::select(lanes_of<T, Arch>((std::uint64_t(1) << (width - d)) - 1), pair, B(T(0)));
  }
};
/// Adds 0 for the padding.
template <class T, class Arch>
struct decode_feature_step<contraction::squared_distance, T, Arch> : distance_step {
  decode_feature_step(index_t) {}
};

}  // namespace detail

template <FeatureSum C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::decode_features<C, T, Arch> {
  using base = detail::decode_features<C, T, Arch>;
  template <class In, class Owner>
  static void run(T* to, typename base::packed const& own, In const& in, Owner const&, decode_place const& at,
                  key_block_place const& block, typename base::copies const& memory) {
    base::by_steps(to, own.q, in, at, block, memory, detail::decode_feature_step<C, T, Arch>{at.p->width});
  }
};

}  // namespace attune::exec_cpu
