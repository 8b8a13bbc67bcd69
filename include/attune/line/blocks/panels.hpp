// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   row_r += sum_s a[s][r] values_s          r of a tile, s of a block
//
// Values of a block of keys, in panels as wide as the registers of a tile, and the products that sum them. Lanes are
// features, so the sums of a query are written directly to its row.
#pragma once

#include <algorithm>
#include <type_traits>

#include <attune/exec/cpu/products.hpp>
#include <attune/line/order/rows.hpp>

namespace attune::line::detail {

/// Rows that a product sums at a time. Tiles of queries consist of that many rows, or of half; the tiles of
/// exec_cpu::tiling need not.
template <class Arch>
inline constexpr int product_rows = exec_cpu::registers<Arch> == 32 ? 8 : 4;

/// Rows of `width` doubles, padded with zeros to a whole panel: [panel][row][columns].
template <class Arch>
class panels {
 public:
  using tile = exec_cpu::tiling<double, Arch>;
  using batch = typename tile::batch;
  static constexpr index_t columns = tile::queries;  ///< per panel

  panels(index_t most, index_t width) : width_(width), panel_step_(most * columns + 40), data_(count() * panel_step_) {
    clear();
  }
  index_t width() const { return width_; }
  index_t count() const { return (width_ + columns - 1) / columns; }
  double* panel(index_t p) { return data_.data() + p * panel_step_; }
  double const* panel(index_t p) const { return data_.data() + p * panel_step_; }
  double at(index_t s, index_t f) const { return panel(f / columns)[s * columns + f % columns]; }
  void clear() {
    std::fill(data_.data(), data_.data() + count() * panel_step_, 0.0);
    begin();
  }

  /// Call before the first row of a block.
  void begin() { std::fill(zero_, zero_ + columns, 0.0); }
  /// Loads row s from `row`, whose numbers are `step` apart.
  template <class T>
  void load(index_t s, T const* row, index_t step) {
    batch zero[tile::vectors];
    for (int v = 0; v < tile::vectors; ++v) zero[v] = batch::load_aligned(zero_ + v * tile::lanes);
    for (index_t f = 0; f < width_; f += columns) {
      double* const to = panel(f / columns) + s * columns;
      if (step == 1 && f + columns <= width_)
        widen(to, row + f);
      else
        for (index_t c = 0; c < (std::min)(columns, width_ - f); ++c) to[c] = double(row[(f + c) * step]);
      for (int v = 0; v < tile::vectors; ++v)  // 0 times a number is 0 only if it is finite
        zero[v] = simd::multiply_add(batch(0.0), batch::load_aligned(to + v * tile::lanes), zero[v]);
    }
    for (int v = 0; v < tile::vectors; ++v) zero[v].store_aligned(zero_ + v * tile::lanes);
  }
  /// Whether every number loaded since begin() is finite.
  bool finite() const {
    return std::all_of(zero_, zero_ + columns, [](double x) { return x == 0; });
  }

 private:
  template <class T>
  static void widen(double* ATTUNE_RESTRICT to, T const* ATTUNE_RESTRICT from) {
    for (index_t c = 0; c < columns; ++c) to[c] = double(from[c]);
  }

  index_t width_,
      panel_step_;  ///< a few cache lines more than its rows: panels of one row must not share a cache set
  alignas(64) double zero_[columns] = {};
  exec_cpu::aligned_buffer<double> data_;
};

/// A product with a panel. Row r is the sum over s in [0, n) of a[r * row_step + s * step] panel_s.
struct panel_product {
  double const* a;
  index_t row_step, step;
  double const* panel;
  index_t n;
};

/// acc = rows [first, first + Rows) of x + ...
template <class Arch, int Rows, class B, int Vectors, class... More>
ATTUNE_INLINE void sum_products(B (&acc)[Rows][Vectors], index_t first, More const&... x) {
  exec_cpu::clear(acc);
  (...,
   exec_cpu::multiply<double, Arch, Rows, Vectors>(acc, x.a + first * x.row_step, x.row_step, x.step, x.panel, x.n));
}

/// Rows [first, first + Rows) of add_products.
template <class Arch, int Rows>
ATTUNE_NOINLINE void add_panel_of_products(panel_product const& x, index_t first, double* to) {
  using tile = exec_cpu::tiling<double, Arch>;
  using batch = typename tile::batch;
  batch acc[Rows][tile::vectors];
  sum_products<Arch>(acc, first, x);
  double* const out = to + first * tile::queries;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < tile::vectors; ++v) {
      double* const at = out + r * tile::queries + v * tile::lanes;
      (batch::load_aligned(at) + acc[r][v]).store_aligned(at);
    }
}
/// to[r * to_step] = row r of x + y, for rows [first, first + Rows).
template <class Arch, int Rows>
ATTUNE_NOINLINE void put_rows_of_products(panel_product const& x, panel_product const& y, index_t first, double* to,
                                          index_t to_step) {
  using tile = exec_cpu::tiling<double, Arch>;
  typename tile::batch acc[Rows][tile::vectors];
  sum_products<Arch>(acc, first, x, y);
  double* const out = to + first * to_step;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < tile::vectors; ++v) acc[r][v].store_aligned(out + r * to_step + v * tile::lanes);
}

/// Calls part(first, count) with std::integral_constant<int, count> for tiles of rows. The last is half a tile if that
/// suffices.
template <class Arch, class Part>
void in_tiles_of_rows(index_t rows, Part const& part) {
  constexpr int whole = product_rows<Arch>, few = 4;
  for (index_t first = 0; first < rows; first += whole)
    if (whole > few && rows - first <= few)
      part(first, std::integral_constant<int, few>{});
    else
      part(first, std::integral_constant<int, whole>{});
}

/// Row r of the panel += row r of x, for r in [0, rows). x.a and the panel have whole tiles of rows.
template <class Arch>
void add_products(panel_product const& x, index_t rows, double* panel) {
  in_tiles_of_rows<Arch>(rows, [&](index_t first, auto some) { add_panel_of_products<Arch, some()>(x, first, panel); });
}
/// to[r * to_step] = row r of x + y, for r in [0, rows). x.a, y.a and `to` have whole tiles of rows.
template <class Arch>
void put_products(panel_product const& x, panel_product const& y, index_t rows, double* to, index_t to_step) {
  in_tiles_of_rows<Arch>(
      rows, [&](index_t first, auto some) { put_rows_of_products<Arch, some()>(x, y, first, to, to_step); });
}

}  // namespace attune::line::detail
