// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   to[key][query] = <R q, R k>        R x: pairs of features turned by the angle of the row
//
// contraction::rotary_dot in a tile. Queries are turned when they are packed. The keys of a block are turned once for
// all tiles of a task. Then the product is the product of contraction::dot.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
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

/// to = R x for one row of contiguous features. `angles`: cosines of all pairs, then sines. `to` may be x.
template <turn Way, rotary_layout Layout, class T, class Arch>
ATTUNE_INLINE void turn_pairs(T* to, T const* x, T const* angles, index_t pairs) {
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
    batch const first = simd::multiply_add(batch(-s), b, batch(c * a)), second = simd::multiply_add(s, a, batch(c * b));
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

/// Rows of contiguous features and their distance.
template <class T>
struct row_places {
  T* data;
  index_t step;
};
/// to_j = R x_j for n rows, each with its own row of angles of E. Angles of another type than T are converted first.
/// Every executor of the CPU calls this function, so a row has the same bits everywhere.
template <turn Way, rotary_layout Layout, class T, class Arch, class E>
ATTUNE_NOINLINE void turn_rows(row_places<T> to, row_places<T const> x, row_places<E const> angles, index_t n,
                               index_t pairs, index_t width, [[maybe_unused]] T* scratch) {
  for (index_t j = 0; j < n; ++j, to.data += to.step, x.data += x.step, angles.data += angles.step) {
    if constexpr (std::is_same_v<T, E>) {
      turn_pairs<Way, Layout, T, Arch>(to.data, x.data, angles.data, pairs);
    } else {
      for (index_t r = 0; r < 2 * pairs; ++r) scratch[r] = T(angles.data[r]);
      turn_pairs<Way, Layout, T, Arch>(to.data, x.data, scratch, pairs);
    }
    if (to.data != x.data)
      for (index_t d = 2 * pairs; d < width; ++d) to.data[d] = x.data[d];
  }
}

/// Turns rows by the angles of queries or of keys.
template <class T, class Arch>
class row_turner {
 public:
  /// Elements of scratch.
  static index_t room(index_t width) { return padded<T>(width); }

  row_turner(stored_view const& angles, rotary_layout layout, index_t width, T* scratch)
      : angles_(angles), layout_(layout), width_(width), scratch_(scratch) {}
  /// to_j = R x_j for n rows, by the rows [row, row + n) of the angles. `to` may be x.
  template <turn Way>
  void run(row_places<T> to, row_places<T const> x, index_t n, index_t b, index_t row) const {
    if (angles_.floats() != nullptr)
      run_by<Way>(to, x, n, angles_.floats(), b, row);
    else
      run_by<Way>(to, x, n, angles_.doubles(), b, row);
  }
  /// The same for one row.
  template <turn Way>
  void run(T* to, T const* x, index_t b, index_t row) const {
    run<Way>({to, 0}, {x, 0}, 1, b, row);
  }

 private:
  template <turn Way, class E>
  void run_by(row_places<T> to, row_places<T const> x, index_t n, E const* angles, index_t b, index_t row) const {
    index_t const pairs = angles_.extents().feature / 2, step = angles_.steps().position;
    row_places<E const> const by{angles + b * angles_.steps().batch + row * step, step};
    if (layout_ == rotary_layout::half)
      turn_rows<Way, rotary_layout::half, T, Arch>(to, x, by, n, pairs, width_, scratch_);
    else
      turn_rows<Way, rotary_layout::interleaved, T, Arch>(to, x, by, n, pairs, width_, scratch_);
  }

  stored_view angles_;
  rotary_layout layout_;
  index_t width_;
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

/// The turned keys of a block, which the tiles of a task share: a row is turned when the first tile needs it.
template <class T, class Arch>
class turned_keys {
  static constexpr index_t most = tiling<T, Arch>::key_block, header = padded<T>(1);
  /// Rows of the keys [first, last) of a batch element and a head of k.
  struct content {
    index_t b, head, first, last;
  };
  static_assert(sizeof(content) <= std::size_t(header) * sizeof(T));

 public:
  /// Elements of memory.
  static index_t room(index_t width) { return header + padded<T>(most * width) + row_turner<T, Arch>::room(width); }
  explicit turned_keys(T* memory) : memory_(memory) {}
  /// Must be called before the first use of the memory, and when the tensor of keys is another one.
  void forget() const { std::construct_at(reinterpret_cast<content*>(memory_), content{-1, -1, 0, 0}); }

  /// The keys of a block. Keys that are stored turned are read like the keys of a dot product.
  template <class Owner>
  row_block<T> operator()(tensor<T const> const& x, Owner const& owner, tile_place const& at,
                          key_block_place const& block) const {
    index_t const head = at.p->group(at.h, at.p->key_heads), width = x.extents().feature;
    T* const rows = memory_ + header;
    if (owner.keys == rotary_keys::turned) return {x, at.b, head, block.first, block.n, rows};
    content& has = *std::launder(reinterpret_cast<content*>(memory_));
    index_t const end = block.first + block.n;
    if (has.b != at.b || has.head != head || block.first < has.first || block.first > has.last ||
        end > has.first + most)
      has = {at.b, head, block.first, block.first};
    if (end > has.last) {
      T* const to = rows + (has.last - has.first) * width;
      row_block<T> const keys(x, at.b, head, has.last, end - has.last, to);
      row_turner<T, Arch>(owner.angles.keys(), owner.layout, width, rows + padded<T>(most * width))
          .template run<turn::forth>({to, width}, {keys.data, keys.step}, end - has.last, at.b, has.last);
      has.last = end;
    }
    return {rows + (block.first - has.first) * width, width};
  }

 private:
  T* memory_;
};

}  // namespace detail

/// `kept`: elements of a block's memory that tiles share, instead of scratch. See tile/contract.hpp.
template <class T, class Arch>
struct contractor<contraction::rotary_dot, T, Arch> {
  static constexpr int queries = tiling<T, Arch>::queries;
  static index_t resident(problem_shape const& p) {
    return padded<T>(queries * p.width) + detail::row_turner<T, Arch>::room(p.width) + padded<T>(p.width);
  }
  static index_t rows(problem_shape const&) { return 0; }
  static index_t kept(problem_shape const& p) { return detail::turned_keys<T, Arch>::room(p.width); }
  template <class In, class Owner>
  static void pack(T* to, In const& in, Owner const& owner, tile_place const& at) {
    detail::pack_turned<T, Arch>(to, in.q, owner, at, to + padded<T>(queries * at.p->width));
  }
  template <class In, class Owner>
  static void run(T* to, T const* q, In const& in, Owner const& owner, tile_place const& at,
                  key_block_place const& block, T* kept) {
    row_block<T> const keys = detail::turned_keys<T, Arch>(kept)(in.k, owner, at, block);
    contract<T, Arch>(to, keys.data, keys.step, q, at.p->width, block.n);
  }
};

}  // namespace attune::exec_cpu
