// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   y_a = c x_a - s x_b,   y_b = c x_b + s x_a        the features (a, b) of a pair, turned
//
// Rows of features, turned by rows of cosines and sines. Nothing here knows a policy.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/core/rotary_angles.hpp>
#include <attune/core/simd_math.hpp>
#include <attune/exec/cpu/products/buffer.hpp>

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

}  // namespace detail

}  // namespace attune::exec_cpu
