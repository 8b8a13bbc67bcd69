// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = <R q, R k>        R x: pairs of features turned by the angle of the row
//
// contraction::rotary_dot in a tile. Queries are turned when they are packed, keys when they are copied to the scratch
// of a block. Then the product is the product of contraction::dot.
#pragma once

#include <algorithm>
#include <utility>

#include <attune/exec/cpu/tile/contractions.hpp>
#include <attune/policies/rotary/angles.hpp>

namespace attune::exec_cpu {

/// R x, or the transpose of R times x.
enum class turn { forth, back };

namespace detail {

template <class B, std::size_t... L>
ATTUNE_INLINE void split_pairs(B const& x, B const& y, B& first, B& second, std::index_sequence<L...>) {
  first = simd::shuffled<2 * L...>(x, y);
  second = simd::shuffled<2 * L + 1 ...>(x, y);
}
template <class B, std::size_t... L>
ATTUNE_INLINE void join_pairs(B const& first, B const& second, B& x, B& y, std::index_sequence<L...>) {
  constexpr std::size_t n = B::size;
  x = simd::shuffled<(L / 2 + L % 2 * n)...>(first, second);
  y = simd::shuffled<(n / 2 + L / 2 + L % 2 * n)...>(first, second);
}

/// to = R x for one row of contiguous features. `angles`: cosines of all pairs, then sines. `to` may be x. Every
/// executor of the CPU calls this function, so a row has the same bits everywhere.
template <turn Way, rotary_layout Layout, class T, class Arch>
ATTUNE_NOINLINE void turn_pairs(T* to, T const* x, T const* angles, index_t pairs) {
  using batch = xsimd::batch<T, Arch>;
  constexpr index_t lanes = index_t(batch::size);
  constexpr auto all = std::make_index_sequence<batch::size>{};
  index_t r = 0;
  for (; r + lanes <= pairs; r += lanes) {
    batch const c = batch::load_unaligned(angles + r), sine = batch::load_unaligned(angles + pairs + r);
    batch const s = Way == turn::forth ? sine : -sine;
    batch a, b;
    if constexpr (Layout == rotary_layout::half) {
      a = batch::load_unaligned(x + r);
      b = batch::load_unaligned(x + pairs + r);
    } else {
      split_pairs(batch::load_unaligned(x + 2 * r), batch::load_unaligned(x + 2 * r + lanes), a, b, all);
    }
    batch const first = simd::multiply_add(batch(-s), b, batch(c * a)),
                second = simd::multiply_add(s, a, batch(c * b));
    if constexpr (Layout == rotary_layout::half) {
      first.store_unaligned(to + r);
      second.store_unaligned(to + pairs + r);
    } else {
      batch low, high;
      join_pairs(first, second, low, high, all);
      low.store_unaligned(to + 2 * r);
      high.store_unaligned(to + 2 * r + lanes);
    }
  }
  for (; r < pairs; ++r) {
    rotary_pair const at(Layout, pairs, r);
    T const c = angles[r], s = Way == turn::forth ? angles[pairs + r] : -angles[pairs + r], a = x[at.first],
            b = x[at.second];
    to[at.first] = c * a - s * b;
    to[at.second] = c * b + s * a;
  }
}

/// The angles of rows, in the number type of the executor.
template <class T, class Arch>
class row_turner {
 public:
  /// Elements of scratch.
  static index_t room(index_t width) { return padded<T>(width); }

  row_turner(stored_view const& angles, rotary_layout layout, index_t width, T* scratch)
      : angles_(angles), layout_(layout), pairs_(angles.extents().feature / 2), width_(width), scratch_(scratch) {}
  /// Row n of the angles turns x, a row of contiguous features. `to` may be x.
  template <turn Way>
  void run(T* to, T const* x, index_t b, index_t n) const {
    T const* const angles = row(b, n);
    if (layout_ == rotary_layout::half)
      turn_pairs<Way, rotary_layout::half, T, Arch>(to, x, angles, pairs_);
    else
      turn_pairs<Way, rotary_layout::interleaved, T, Arch>(to, x, angles, pairs_);
    if (to != x) std::copy(x + 2 * pairs_, x + width_, to + 2 * pairs_);
  }

 private:
  T const* row(index_t b, index_t n) const {
    index_t const at = b * angles_.steps().batch + n * angles_.steps().position;
    auto const converted = [&](auto const* from) {
      for (index_t r = 0; r < 2 * pairs_; ++r) scratch_[r] = T(from[r]);
      return static_cast<T const*>(scratch_);
    };
    if constexpr (std::is_same_v<T, float>) {
      if (float const* const in_place = angles_.floats()) return in_place + at;
      return converted(angles_.doubles() + at);
    } else {
      if (double const* const in_place = angles_.doubles()) return in_place + at;
      return converted(angles_.floats() + at);
    }
  }

  stored_view angles_;
  rotary_layout layout_;
  index_t pairs_, width_;
  T* scratch_;
};

/// packed[d][query] = feature d of R x_query: pack_queries() with turned rows. `scratch`: row_turner::room and a row.
template <class T, class Arch, class Owner>
ATTUNE_NOINLINE void pack_turned(T* packed, tensor<T const> const& x, Owner const& owner, tile_place const& at,
                                 T* scratch) {
  constexpr index_t queries = tiling<T, Arch>::queries;
  index_t const width = x.extents().feature, step = x.steps().feature;
  row_turner<T, Arch> const turner(owner.angles.queries(), owner.layout, width, scratch);
  T* const row = scratch + row_turner<T, Arch>::room(width);
  for (index_t l = 0; l < queries; ++l) {
    index_t const i = (std::min)(at.first + l, at.p->queries - 1);
    T const* const from = x.row(at.b, at.h, i);
    if (step != 1)
      for (index_t d = 0; d < width; ++d) row[d] = from[d * step];
    turner.template run<turn::forth>(row, step == 1 ? from : row, at.b, owner.angles.row_of_query(i, at.p->offset));
    for (index_t d = 0; d < width; ++d) packed[d * queries + l] = row[d];
  }
}

/// Elements of scratch for turned_keys.
template <class T, class Arch>
index_t turned_keys_room(index_t width) {
  return padded<T>(tiling<T, Arch>::key_block * width) + row_turner<T, Arch>::room(width);
}
/// The keys of a block, turned into `scratch`. Keys that are stored turned are read like the keys of a dot product.
template <class T, class Arch, class Owner>
ATTUNE_NOINLINE row_block<T> turned_keys(tensor<T const> const& x, Owner const& owner, tile_place const& at,
                                         key_block_place const& block, T* scratch) {
  index_t const head = at.p->group(at.h, at.p->key_heads);
  row_block<T> const keys(x, at.b, head, block.first, block.n, scratch);
  if (owner.keys == rotary_keys::turned) return keys;
  index_t const width = x.extents().feature;
  row_turner<T, Arch> const turner(owner.angles.keys(), owner.layout, width,
                                   scratch + padded<T>(tiling<T, Arch>::key_block * width));
  for (index_t j = 0; j < block.n; ++j)
    turner.template run<turn::forth>(scratch + j * width, keys.data + j * keys.step, at.b, block.first + j);
  return {scratch, width};
}

}  // namespace detail

template <class T, class Arch>
struct contractor<contraction::rotary_dot, T, Arch> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const& p) {
    return padded<T>(queries * p.width) + detail::row_turner<T, Arch>::room(p.width) + padded<T>(p.width);
  }
  static index_t rows(problem_shape const& p) { return detail::turned_keys_room<T, Arch>(p.width); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_turned<T, Arch>(to, in.q, owner, at, to + padded<T>(queries * at.p->width));
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, T* rows) {
    row_block<T> const keys = detail::turned_keys<T, Arch>(in.k, owner, at, block, rows);
    contract<T, Arch>(to, keys.data, keys.step, q, at.p->width, block.n);
  }
};

}  // namespace attune::exec_cpu
