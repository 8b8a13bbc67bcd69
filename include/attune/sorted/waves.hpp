// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-(y - u)^2)  =  sum_m c_m cos(m h (y - u))  -  images,     c_m = h / sqrt(pi) e^(-h^2 m^2 / 4), half of it for m = 0
//   cos(m h (y - u)) = cos(m h y) cos(m h u) + sin(m h y) sin(m h u)
//
// A Gaussian on a bounded line is a sum of few waves (Poisson's formula; the images are Gaussians 2 pi / h away), and a wave of a
// difference is a product of waves: what all keys of earlier blocks give to a query is one table of 2 M + 1 rows. No cells, no
// windows, no expansions to move: products of matrices alone, in the order of positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>
#include <attune/sorted/blocks.hpp>
#include <attune/sorted/gaussian_window.hpp>

namespace attune::sorted::detail {

/// How many waves, and what they miss of e^(-x^2) for |x| <= reach.
struct wave_plan {
  static constexpr int most_waves = 256;
  double step;     ///< h
  int waves;       ///< M
  double missing;  ///< bound on the error of one pair

  /// Rows of the table.
  index_t rows() const { return 2 * waves + 1; }
  double coefficient(int m) const {
    return step * std::numbers::inv_sqrtpi * std::exp(-step * step * m * m / 4) / (m == 0 ? 2 : 1);
  }

  /// Nothing if that takes more than most_waves.
  static std::optional<wave_plan> of(double reach, double missing) {
    double const far = std::sqrt(-std::log(missing / 8));  // e^(-far^2) is an eighth of it
    wave_plan plan{2 * std::numbers::pi / (reach + far), 0, missing};
    // Images: of the two nearest one may lie as near as far, the other no nearer than reach + far, those behind them
    // much farther: less than 3 e^(-far^2). Waves after the last: less than erfc(h M / 2).
    while (std::erfc(plan.step * plan.waves / 2) > missing / 2)
      if (++plan.waves > most_waves) return std::nullopt;
    return plan;
  }
};

/// The weight of a pair whose places are in units of sqrt(tau).
struct weigh_gaussian {
  static constexpr std::size_t numbers = 1;
  template <class B>
  ATTUNE_INLINE B operator()(B const (&q)[1], B const (&k)[1]) const {
    B const e = q[0] - k[0];
    return math::exp(B(-(e * e)));
  }
};

/// Sums over keys of earlier blocks as a table of waves, and the waves of a tile of queries.
template <class Arch>
class wave_table {
  using tile = exec_cpu::tiling<double, Arch>;
  using batch = typename tile::batch;

 public:
  wave_table(wave_plan const& plan, index_t most_keys, index_t width)
      : plan_(plan), rows_((plan.rows() + tile::rows - 1) / tile::rows * tile::rows), most_keys_(padded(most_keys)),
        table_(rows_, width), mass_(std::size_t(rows_), 0.0), of_keys_(rows_ * most_keys_),
        of_queries_(rows_ * tile::queries + tile::rows) {
    for (int m = 0; m <= plan.waves; ++m) coefficient_.push_back(plan.coefficient(m));
    std::fill_n(of_keys_.data(), rows_ * most_keys_, 0.0);
    std::fill_n(of_queries_.data(), rows_ * tile::queries, 0.0);
  }
  /// Adds the keys at u(0 .. count), whose values are `values`.
  template <class Place>
  void absorb(index_t count, Place const& u, panels<Arch> const& values) {
    for (index_t s = 0; s < count; s += tile::lanes) {
      index_t const some = std::min<index_t>(tile::lanes, count - s);
      alignas(64) double x[tile::lanes] = {}, one[tile::lanes] = {};
      for (index_t l = 0; l < some; ++l) x[l] = u(s + l), one[l] = 1;
      waves(batch::load_aligned(x), batch::load_aligned(one), of_keys_.data() + s, most_keys_, [](int) { return batch(1.0); });
    }
    for (index_t r = 0; r < plan_.rows(); ++r) {
      batch sum(0.0);
      for (index_t s = 0; s < count; s += tile::lanes) sum += batch::load_aligned(of_keys_.data() + r * most_keys_ + s);
      alignas(64) double lanes[tile::lanes];
      sum.store_aligned(lanes);
      for (double const x : lanes) mass_[std::size_t(r)] += x;
    }
    for (index_t p = 0; p < values.count(); ++p)
      add_products<Arch>(of_keys_.data(), most_keys_, 1, rows_, values.panel(p), count,
                         [to = table_.panel(p)](index_t r) { return to + r * panels<Arch>::columns; });
  }
  /// Adds to the rows and masses of a tile what its queries at y(0 .. count) get from the table.
  template <class Tiles, class Place>
  void add_to(Tiles& tiles, index_t count, Place const& y) {
    alignas(64) double x[tile::queries] = {}, mass[tile::queries];
    for (index_t t = 0; t < count; ++t) x[t] = y(t);
    for (int v = 0; v < tile::vectors; ++v) {
      double* const to = of_queries_.data() + v * tile::lanes;
      waves(batch::load_aligned(x + v * tile::lanes), batch(1.0), to, tile::queries,
            [&](int m) { return batch(coefficient_[std::size_t(m)]); });
      batch sum(0.0);
      for (index_t r = 0; r < plan_.rows(); ++r)
        sum = simd::multiply_add(batch(mass_[std::size_t(r)]), batch::load_aligned(to + r * tile::queries), sum);
      sum.store_aligned(mass + v * tile::lanes);
    }
    for (index_t t = 0; t < count; t += tile::rows)
      tiles.add_rows(of_queries_.data() + t, table_, plan_.rows(), t, std::min<index_t>(tile::rows, count - t));
    for (index_t t = 0; t < count; ++t) tiles.mass(t) += mass[t];
  }
  /// Rounding of what add_to adds for `count` keys, as a share of a mass of 1: a phase is known to 10 units of its last place for each
  /// turn that made it, on both sides; blocks of keys, and waves, are summed one after another.
  double rounding(index_t count) const {
    double const phases = 30.0 * plan_.waves + 16, sums = double(most_keys_ + count / most_keys_ + rows_);
    return 0x1p-53 * double(count) * (phases + sums);
  }

 private:
  /// to[2 m - 1], to[2 m] = f_m cos(m h x), f_m sin(m h x); to[0] = f_0; all times `one`.
  template <class Factor>
  ATTUNE_INLINE void waves(batch const& x, batch const& one, double* to, index_t step, Factor const& factor) const {
    auto const [sine, cosine] = xsimd::sincos(x * batch(plan_.step));
    batch c = one, s(0.0);
    (one * factor(0)).store_aligned(to);
    for (int m = 1; m <= plan_.waves; ++m) {
      batch const next = c * cosine - s * sine;
      s = s * cosine + c * sine;
      c = next;
      (c * factor(m)).store_aligned(to + (2 * m - 1) * step);
      (s * factor(m)).store_aligned(to + 2 * m * step);
    }
  }

  wave_plan plan_;
  index_t rows_, most_keys_;
  panels<Arch> table_;
  std::vector<double> mass_, coefficient_;
  exec_cpu::aligned_buffer<double> of_keys_, of_queries_;
};

/// Query i by the keys among its first `count` that can matter, one by one: what rows with little mass are left to.
template <class T>
struct lone_row {
  double reference, mass;
  index_t met = 0;  ///< keys
  gaussian_certificate left_out;

  lone_row(arrays<T> const& in, extents const& e, index_t b, index_t h, line<double> const& on, double tau, double tolerance,
           index_t i, index_t count, double* row)
      : reference(unseen_reference<double>()), mass(0) {
    std::fill_n(row, e.width, 0.0);
    kernel::scalar_sort::bound<double> const kernel{tau};
    key<double> const any{0.0};
    double const q = on.q[std::size_t(i)], unit = std::sqrt(tau);
    double away = std::numeric_limits<double>::infinity(), farthest = 0;
    for (index_t j = 0; j < count; ++j) away = std::min(away, std::fabs(q - on.k[std::size_t(j)]));
    reference = kernel.score(away, any);
    double const reach = window_reach(away / unit, double(count), std::log(tolerance / 4)) * unit;
    for (index_t j = 0; j < count; ++j) {
      double const x = q - on.k[std::size_t(j)];
      if (!(std::fabs(x) <= reach)) continue;
      double const s = kernel.score(x, any), w = normalizer::softmax::bound<double>{}.earned(s, reference);
      farthest = std::max(farthest, -s);
      mass += w;
      ++met;
      index_t const step = in.v.steps().feature;
      T const* const v = in.v.row(b, e.value_head(h), j);
      for (index_t f = 0; f < e.width; ++f) row[f] += w * double(v[f * step]);
    }
    left_out.discarded = double(count - met) * std::exp(kernel.score(reach, any) - reference) / mass;
    left_out.rounded = rounding_of_pairs(met, farthest);
    left_out.boxes = 1;
  }
};

/// A staircase by waves. finish(i, row, mass): the sums of query i, relative to e^0; late(i): it wants more than waves can
/// promise. Returns the rows of the table; or 0, having finished some or none of them, if waves do not serve: too long a line, too few
/// pairs, values that are not finite, or whose sum may not be.
template <class T, class Arch, class Finish, class Late>
index_t walk_waves(arrays<T> const& in, extents const& e, index_t b, index_t h, line<double> const& on, double tau,
                   double tolerance, staircase const& stairs, gaussian_certificate& worst, Finish const& finish,
                   Late const& late) {
  constexpr index_t size = 32;  // of a block: what waves cost does not depend on it
  // A share of all keys' masses; rows that have less than 2e-4 of them in sum are late.
  constexpr double least_row = 2e-4, least_tolerance = 1e-10;
  index_t const keys = stairs.seen.back(), rows = index_t(stairs.seen.size());
  if (keys < 1024 || rows < keys / 4 || tolerance < least_tolerance) return 0;
  if (largest_value(in.v, b, e.value_head(h)) > 1e290 / double(keys)) return 0;
  auto const [least_q, most_q] = std::minmax_element(on.q.begin(), on.q.end());
  auto const [least_k, most_k] = std::minmax_element(on.k.begin(), on.k.end());
  double const least = std::min(*least_q, *least_k), most = std::max(*most_q, *most_k), unit = std::sqrt(tau);
  double const reach = (most - least) / unit * (1 + 1e-12);
  auto const plan = wave_plan::of(reach, tolerance / 2 * least_row);
  if (!plan || plan->rows() > keys / 8) return 0;

  std::vector<double> of_q, of_k;
  double const of_pairs = 0x1p-53 * double(size) * (64 + 4 * reach);  // a place is known to 2 units of its last place
  double const center = least + (most - least) / 2;
  for (auto const& [from, to] : {std::pair{&on.q, &of_q}, std::pair{&on.k, &of_k}}) {
    to->reserve(from->size());
    for (double const x : *from) to->push_back((x - center) / unit);
  }
  pair_numbers<1> const places{{of_q}, {of_k}};
  pair_tiles<Arch, weigh_gaussian> tiles({}, places, size, e.width);
  wave_table<Arch> table(*plan, size, e.width);
  bool finite = true;
  walk_blocks(
      stairs, 0, keys, size, 0, tiles,
      [&](index_t first, index_t last) {
        for (index_t n = first; n < last && finite; ++n) {
          index_t const j = stairs.key(n);
          tiles.load_key(n - first, j, in.v.row(b, e.value_head(h), j), in.v.steps().feature);
        }
        finite = finite && tiles.values().finite();
      },
      [&](std::span<index_t const> queries, index_t, index_t first) {
        tiles.begin_rows();
        if (first > 0 && finite)
          table.add_to(tiles, index_t(queries.size()),
                       [&](index_t t) { return places.q[0][std::size_t(queries[std::size_t(t)])]; });
      },
      [&](std::span<index_t const> queries, std::span<index_t const> count, index_t first) {
        if (!finite) return;
        ++worst.boxes;
        ++worst.expanded;
        for (index_t t = 0; t < index_t(queries.size()); ++t) {
          double const mass = tiles.mass(t);
          if (first + count[std::size_t(t)] == 0) {
            finish(queries[std::size_t(t)], tiles.row(t), mass);  // sees nothing
            continue;
          }
          gaussian_certificate row;
          row.truncated = double(first) * plan->missing / mass;
          row.rounded = 0x1p-53 * 16 + (table.rounding(first) + of_pairs) / mass;
          if (!(mass > 0) || !(row.share() <= 0.75 * tolerance)) {
            late(queries[std::size_t(t)]);
            continue;
          }
          worst.include(row);
          finish(queries[std::size_t(t)], tiles.row(t), mass);
        }
      },
      [&](index_t first, index_t last) {
        if (finite)
          table.absorb(
              last - first, [&](index_t s) { return places.k[0][std::size_t(stairs.key(first + s))]; }, tiles.values());
      });
  return finite ? plan->rows() : 0;
}

}  // namespace attune::sorted::detail
