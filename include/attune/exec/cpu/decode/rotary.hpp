// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[row][key] = <R q, R k>      for few rows that share their keys, and a block of keys
//
// contraction::rotary_dot in the decode path. Keys that are stored turned are read in place, as they are stored. Others
// are turned into the copy of the block.
#pragma once

#include <algorithm>

#include <attune/exec/cpu/decode/contractions.hpp>

namespace attune::exec_cpu {

template <class T, class Arch>
struct decode_contractor<contraction::rotary_dot, T, Arch> : detail::decode_features<contraction::rotary_dot, T, Arch> {
  using base = detail::decode_features<contraction::rotary_dot, T, Arch>;
  using turner = detail::row_turner<T, Arch>;
  /// A turned row, and scratch as long.
  static index_t packed(problem_shape const& p) { return 2 * base::packed(p); }
  /// A turned key, and its share of the scratch for the angles of a row.
  static index_t copied(problem_shape const& p) {
    return base::copied(p) + p.width / decode_tiling<T, Arch>::block + 1;
  }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, decode_place const& at) {
    detail::pack_features<T, Arch>(to, in.q, at);
    index_t const whole = base::packed(*at.p);
    turner const turns(owner.angles.queries(), owner.layout, at.p->width, to + at.rows * whole);
    for (index_t r = 0; r < at.rows; ++r)
      turns.template run<turn::forth>(to + r * whole, to + r * whole, at.b,
                                      owner.angles.row_of_query(at.query_of(r), at.p->offset_of(at.b)));
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const& owner, decode_place const& at,
                  key_block_place const& block, T* copy) {
    auto const& keys = feature_rows<field::k>(in);
    if (owner.keys == rotary_keys::turned)
      return detail::contract_with_keys<T, Arch>(to, q, keys, at.p->key_heads, at, block, copy);
    index_t const width = at.p->width, whole = base::packed(*at.p), step = keys.steps().feature,
                  head = at.p->group(at.head, at.p->key_heads);
    turner const turns(owner.angles.keys(), owner.layout, width, copy + decode_tiling<T, Arch>::block * whole);
    for (index_t j = 0; j < block.n; ++j) {
      auto const* const from = keys.row(at.b, head, block.first + j);
      T* const row = copy + j * whole;
      for (index_t d = 0; d < width; ++d) row[d] = T(from[d * step]);
      std::fill(row + width, row + whole, T(0));
    }
    turns.template run<turn::forth>({copy, whole}, {copy, whole}, block.n, at.b, block.first);
    contract_features<T, Arch>(to, q, at.rows, whole, copy, whole, block.n, at.values);
  }
};

}  // namespace attune::exec_cpu
