// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = <left(q, z), k>
//
// Products of a query and a key: contraction::KeyProduct.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/contraction/features.hpp>

namespace attune::exec_cpu {

template <KeyProduct C, class T, class Arch>
struct contractor<C, T, Arch> : detail::feature_contractor<C, T, Arch> {
  using packed = detail::packed_queries_of<C::x::of, T, Arch>;
  using copies = detail::copied_keys<C::x::of, T, Arch>;
  template <class In, class Owner>
  static void pack(packed const& to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_left<C, T, Arch>(to.q, in, owner, at);
  }
  template <class In, class Owner>
  static void run(T* to, packed const& own, In const& in, Owner const&, tile_place const& at,
                  key_block_place const& block, copies const& memory) {
    contractor::by_steps(to, own.q, in, at, block, memory, product_step{});
  }
};

/// The gradient of the query side is a product like the forward's value product; the gradient of the key side is an
/// outer product. The packed numbers are left(q, z). The keys need exactly that; the queries also need the derivative
/// of left.
template <KeyProduct C, class T, class Arch>
struct contraction_vjp<C, T, Arch> : detail::feature_vjp<C, T, Arch> {
  using base = detail::feature_vjp<C, T, Arch>;
  using scratch = detail::copied_keys<C::x::of, T, Arch>;
  template <class Tile, class In, class Owner>
  static void pull(T const* ds, Tile const& t, In const& in, Owner const&, key_block_place const& b,
                   scratch const& memory, gradient_sinks<T>& to) {
    index_t const width = t.place.p->width_of(base::query);
    row_block<T> const keys = base::keys(in, t, b, memory.keys);
    auto& known = to.checked[std::size_t(base::key)];
    if (known.first != b.first || known.n != b.n) known = {b.first, b.n, finite_rows<T, Arch>(keys, width, 0, b.n)};
    accumulate_some<T, Arch>(t.grown.by_query, keys, ds, t.packed.q, b.n, width, known.finite);
    key_rows<T> const& rows = to.rows(base::key);
    if (rows.data == nullptr) return;
    outer<T, Arch>(rows.at(b.first), rows.step, ds, t.grown.panels, t.count, b.n, width, *t.grown.finite != T(0));
  }
};

/// <left', k> + <left, k'>
template <KeyProduct C, class T, class Arch>
struct contraction_jvp<C, T, Arch> : detail::product_jvp<C, T, Arch> {
  using tile = tiling<T, Arch>;
  static constexpr field key = C::y::of;
  struct scratch : detail::copied_keys<C::x::of, T, Arch> {
    T* more;  ///< the second product
    scratch(arena<T>& from, problem_shape const& p)
        : detail::copied_keys<C::x::of, T, Arch>(from, p), more(from.take(tile::key_block * tile::queries)) {}
  };
  template <class Packed, class Call, class Owner>
  static void run(T* to, typename contraction_jvp::moved const& own, Packed const& packed, Call const& c, Owner const&,
                  tile_place const& at, key_block_place const& b, scratch const& memory) {
    auto const multiply_by = [&](T* result, T const* left, tensor<T const> const& k) {
      row_block<T> const rows(k, at.b, at.p->group(at.h, at.p->heads_of(key)), b.first, b.n, memory.keys);
      contract<T, Arch>(result, rows.data, rows.step, left, at.p->width_of(key), b.n);
    };
    multiply_by(to, own.q, member<key>(c.in));
    if (member<key>(c.along).absent()) return;
    multiply_by(memory.more, packed.q, member<key>(c.along));
    detail::add_numbers(to, memory.more, b.n * tile::queries);
  }
};

template <KeyProduct C, class T, class Arch>
struct decode_contractor<C, T, Arch> : detail::decode_features<C, T, Arch> {
  using base = detail::decode_features<C, T, Arch>;
  template <class In, class Owner>
  static void pack(typename base::packed const& to, In const& in, [[maybe_unused]] Owner const& owner,
                   decode_place const& at) {
    base::pack(to, in, owner, at);
    if constexpr (C::z::side != operand_side::none) {
      index_t const whole = base::whole(*at.p);
      for (index_t r = 0; r < at.rows; ++r)
        for (index_t d = 0; d < at.p->width_of(base::query); ++d)
          to.q[r * whole + d] = C::left(to.q[r * whole + d], T(C::z::table_of::of(owner)(at.b, at.head_of(r), 0, d)));
    }
  }
  template <class In, class Owner>
  static void run(T* to, typename base::packed const& own, In const& in, Owner const&, decode_place const& at,
                  key_block_place const& block, typename base::copies const& memory) {
    base::by_steps(to, own.q, in, at, block, memory, product_step{});
  }
};

}  // namespace attune::exec_cpu
