// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cos(m h (y - u)) = cos(m h y) cos(m h u) + sin(m h y) sin(m h u)
//
// A Gaussian on a box of the line is a sum of a few waves (wave_plan.hpp), and a wave of a difference is a product of
// waves. So all keys of earlier blocks contribute to a query by one table of 2 M + 1 rows. There are no windows and no
// expansions to move: only products of matrices, in the order of positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <attune/exec/cpu/products.hpp>
#include <attune/line/blocks/blocks.hpp>
#include <attune/line/certificates.hpp>
#include <attune/line/gaussian/wave_plan.hpp>
#include <attune/line/gaussian/window.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies/normalizer/softmax.hpp>

namespace attune::line::detail {

/// The weight of a pair whose positions are in units of sqrt(tau).
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
      : plan_(plan), rows_((plan.rows() + product_rows<Arch> - 1) / product_rows<Arch> * product_rows<Arch>),
        most_keys_((most_keys + at_once - 1) / at_once * at_once), table_(rows_, width), mass_(rows_),
        of_keys_(rows_ * most_keys_), of_queries_(rows_ * at_once + product_rows<Arch>) {
    for (int m = 0; m <= plan.waves; ++m) coefficient_.push_back(plan.coefficient(m));
    std::fill_n(mass_.data(), rows_, 0.0);
    std::fill_n(of_keys_.data(), rows_ * most_keys_, 0.0);
    std::fill_n(of_queries_.data(), rows_ * at_once, 0.0);
  }
  /// Adds the keys at u(0), ..., u(count - 1), whose values are `values`.
  template <class Place>
  void accumulate(index_t count, Place const& u, panels<Arch> const& values) {
    for (index_t s = 0; s < count; s += at_once) {
      alignas(64) double x[at_once] = {}, there[at_once] = {};
      for (index_t l = 0; l < (std::min<index_t>)(at_once, count - s); ++l) x[l] = u(s + l), there[l] = 1;
      waves_of_keys(x, there, of_keys_.data() + s);
    }
    for (index_t r = 0; r < rows_; r += tile::lanes) {
      batch of_row[tile::lanes];
      for (int l = 0; l < tile::lanes; ++l) {
        double const* const row = of_keys_.data() + (r + l) * most_keys_;
        of_row[l] = batch::load_aligned(row);
        for (index_t s = tile::lanes; s < count; s += tile::lanes) of_row[l] += batch::load_aligned(row + s);
      }
      batch const sums = exec_cpu::sums_of_vectors<1, tile::lanes>(of_row);
      (batch::load_aligned(mass_.data() + r) + sums).store_aligned(mass_.data() + r);
    }
    for (index_t p = 0; p < values.count(); ++p)
      add_products<Arch>({of_keys_.data(), most_keys_, 1, values.panel(p), count}, plan_.rows(), table_.panel(p));
  }
  /// Starts the rows and masses of a tile with the sums from the table for its queries at y(0), ..., y(count - 1).
  template <class Tiles, class Place>
  void begin_rows(Tiles& tiles, index_t count, Place const& y) {
    alignas(64) double x[at_once] = {}, mass[at_once];
    for (index_t t = 0; t < count; ++t) x[t] = y(t);
    waves_of_queries(x, mass);
    tiles.begin_rows(of_queries_.data(), table_, plan_.rows());
    for (index_t t = 0; t < count; ++t) tiles.mass(t) = mass[t];
  }
  /// Rounding error of a row from `count` keys, relative to a mass of 1. A phase is accurate to 10 units in the last
  /// place per multiplication that produced it, on both sides. A position on a line of length `range` is accurate to 2
  /// units. Blocks of keys and waves are summed sequentially.
  double rounding(index_t count, double range) const {
    double const by_places = 4 * range, by_phases = 30.0 * plan_.waves + 16,
                 by_sums = double(most_keys_ + count / most_keys_ + rows_);
    return 0x1p-53 * double(count) * (by_places + by_phases + by_sums);
  }

 private:
  static constexpr int vectors = tile::vectors, at_once = tile::queries;  ///< positions whose waves are made together

  /// cos(m h x) and sin(m h x), one wave after the other.
  struct phases {
    batch c[vectors], s[vectors], cosine[vectors], sine[vectors];
    /// At m = 0: c = there, s = 0.
    ATTUNE_INLINE phases(double const* x, double const* there, double step) {
      for (int v = 0; v < vectors; ++v) {
        batch const angle = batch::load_aligned(x + v * tile::lanes) * batch(step);
        sine[v] = math::sin(angle), cosine[v] = math::cos(angle);
        c[v] = there == nullptr ? batch(1.0) : batch::load_aligned(there + v * tile::lanes);
        s[v] = batch(0.0);
      }
    }
    ATTUNE_INLINE void advance() {
      for (int v = 0; v < vectors; ++v) {
        batch const next = c[v] * cosine[v] - s[v] * sine[v];
        s[v] = s[v] * cosine[v] + c[v] * sine[v];
        c[v] = next;
      }
    }
  };
  /// Rows 0, 2 m - 1, 2 m of `to`: 1, cos(m h x), sin(m h x), each times `there`.
  ATTUNE_NOINLINE void waves_of_keys(double const* x, double const* there, double* to) const {
    phases at(x, there, plan_.step);
    for (int v = 0; v < vectors; ++v) at.c[v].store_aligned(to + v * tile::lanes);
    to += most_keys_;
    for (int m = 1; m <= plan_.waves; ++m, to += 2 * most_keys_) {
      at.advance();
      for (int v = 0; v < vectors; ++v) {
        at.c[v].store_aligned(to + v * tile::lanes);
        at.s[v].store_aligned(to + most_keys_ + v * tile::lanes);
      }
    }
  }
  /// The same for queries, times c_m, and their products with the masses.
  ATTUNE_NOINLINE void waves_of_queries(double const* x, double* masses) {
    phases at(x, nullptr, plan_.step);
    batch by_cosines[vectors], by_sines[vectors];
    double* to = of_queries_.data();
    for (int v = 0; v < vectors; ++v) {
      batch const f = at.c[v] * coefficient_[0];
      f.store_aligned(to + v * tile::lanes);
      by_cosines[v] = f * mass_.data()[0];
      by_sines[v] = batch(0.0);
    }
    to += at_once;
    for (int m = 1; m <= plan_.waves; ++m, to += 2 * at_once) {
      at.advance();
      double const* const mass = mass_.data() + 2 * m - 1;
      batch const factor(coefficient_[std::size_t(m)]), of_cosine(mass[0]), of_sine(mass[1]);
      for (int v = 0; v < vectors; ++v) {
        batch const cosine = at.c[v] * factor, sine = at.s[v] * factor;
        cosine.store_aligned(to + v * tile::lanes);
        sine.store_aligned(to + at_once + v * tile::lanes);
        by_cosines[v] = simd::multiply_add(of_cosine, cosine, by_cosines[v]);
        by_sines[v] = simd::multiply_add(of_sine, sine, by_sines[v]);
      }
    }
    for (int v = 0; v < vectors; ++v) (by_cosines[v] + by_sines[v]).store_aligned(masses + v * tile::lanes);
  }

  wave_plan plan_;
  index_t rows_, most_keys_;
  panels<Arch> table_;
  std::vector<double> coefficient_;
  exec_cpu::aligned_buffer<double> mass_, of_keys_, of_queries_;
};

/// Computes query i with the relevant keys among its first `count`, one by one. Used for rows with little mass.
template <class T>
struct lone_row {
  double reference, mass;
  index_t met = 0;  ///< keys computed
  gaussian_certificate left_out;

  lone_row(arrays<T> const& in, extents const& e, index_t b, index_t h, scalars<double> const& on, double tau,
           double tolerance, index_t i, index_t count, double* row)
      : reference(initial_max<double>()), mass(0) {
    std::fill_n(row, e.width, 0.0);
    // In units of sqrt(tau), squares of distances neither overflow nor lose digits where the row has mass.
    double const unit = std::sqrt(tau), q = on.q[std::size_t(i)];
    auto const apart = [&](index_t j) { return (q - on.k[std::size_t(j)]) / unit; };
    double away = std::numeric_limits<double>::infinity(), farthest = 0;
    for (index_t j = 0; j < count; ++j) away = (std::min)(away, std::fabs(apart(j)));
    reference = -away * away;
    double const reach = window_reach(away, double(count), std::log(tolerance / 4));
    for (index_t j = 0; j < count; ++j) {
      double const x = apart(j);
      if (!(std::fabs(x) <= reach)) continue;
      double const w = normalizer::softmax::bound<double>{}.earned(-x * x, reference);
      farthest = (std::max)(farthest, x * x);
      mass += w;
      ++met;
      index_t const step = in.v.steps().feature;
      T const* const v = in.v.row(b, e.value_head(h), j);
      for (index_t f = 0; f < e.width; ++f) row[f] += w * double(v[f * step]);
    }
    left_out.discarded = double(count - met) * std::exp(-reach * reach - reference) / mass;
    left_out.rounded = rounding_of_pairs(met, farthest);
    left_out.boxes = 1;
  }
};

/// The queries of a staircase in one box, and the keys near them.
struct box_stairs {
  std::vector<index_t> seen, hidden;  ///< numbers of keys that a query sees: near this box, and elsewhere
  std::vector<index_t> queries, keys;
  index_t query(index_t r) const { return queries[std::size_t(r)]; }
  index_t key(index_t n) const { return keys[std::size_t(n)]; }
};

/// One for each box. Every query is in exactly one of them.
inline std::vector<box_stairs> stairs_of_boxes(staircase const& all, wave_boxes const& line) {
  std::vector<box_stairs> of(line.boxes().size());
  // By cell: the box of its queries, and the boxes that need its keys. Those boxes need not be neighbors: a box whose
  // rows are heavy needs keys from a shorter distance than the boxes on either side of it.
  std::vector<std::size_t> home(std::size_t(line.cells()));
  std::vector<std::vector<box_stairs*>> takers(home.size());
  for (std::size_t b = 0; b < of.size(); ++b) {
    wave_box const& box = line.boxes()[b];
    for (index_t c = box.first; c < box.last; ++c) home[std::size_t(c)] = b;
    for (index_t c = box.first_key; c < box.last_key; ++c) takers[std::size_t(c)].push_back(&of[b]);
  }
  index_t n = 0;
  for (index_t r = 0; r < index_t(all.seen.size()); ++r) {
    for (; n < all.seen[std::size_t(r)]; ++n) {
      index_t const j = all.key(n);
      for (box_stairs* const taker : takers[line.cell_of_key(j)]) taker->keys.push_back(j);
    }
    index_t const i = all.query(r);
    box_stairs& own = of[home[line.cell_of_query(i)]];
    own.queries.push_back(i);
    own.seen.push_back(index_t(own.keys.size()));
    own.hidden.push_back(n - index_t(own.keys.size()));
  }
  return of;
}

/// Processes a staircase by waves. finish(i, row, mass): gets the sums of query i, relative to e^0. late(i): called if
/// waves cannot meet the tolerance for query i. Returns the work, in table rows read or added to. Returns 0 if waves do
/// not apply, after finishing some or none of the queries: the line is too long, there are too few pairs, or values are
/// not finite or may have an infinite sum.
template <class T, class Arch, class Finish, class Late>
double walk_waves(arrays<T> const& in, extents const& e, index_t b, index_t h, scalars<double> const& on, double tau,
                  double tolerance, staircase const& stairs, gaussian_certificate& worst, Finish const& finish,
                  Late const& late) {
  constexpr index_t size = 32;  // per block; the cost of waves does not depend on it
  constexpr double least_tolerance = 1e-10;
  index_t const keys = stairs.seen.back(), group = e.value_head(h);
  if (keys < 1024 || tolerance < least_tolerance) return 0;
  if (largest_value(in.v, b, group) > 1e290 / double(keys)) return 0;

  std::vector<double> of_q, of_k;  // positions in units of sqrt(tau), each accurate to 2 units in the last place
  for (auto const& [from, to] : {std::pair{&on.q, &of_q}, std::pair{&on.k, &of_k}}) {
    to->reserve(from->size());
    for (double const x : *from) to->push_back((x - on.q.front()) / std::sqrt(tau));
  }
  wave_boxes const line(of_q, of_k, tolerance);
  if (line.boxes().empty() || line.work() > std::accumulate(stairs.seen.begin(), stairs.seen.end(), 0.0) / 2) return 0;
  auto const stairs_of = stairs_of_boxes(stairs, line);
  double const of_pairs = 0x1p-53 * double(size) * (64 + 4 * line.range());
  pair_numbers<1> const places{{of_q}, {of_k}};
  pair_tiles<Arch, weigh_gaussian> tiles({}, places, size, e.width);
  auto const fetch_row = [&](index_t j) { exec_cpu::prefetch_range(in.v, b, group, j, j + 1).fetch_alone(0); };
  bool finite = true;
  for (std::size_t n = 0; n < stairs_of.size() && finite; ++n) {
    wave_box const& box = line.boxes()[n];
    box_stairs const& own = stairs_of[n];
    double const center = line.center(box), beyond = std::exp(-box.within * box.within);
    wave_table<Arch> table(box.waves, size, e.width);
    // Query r of the box has been combined with the first `met` of its keys, `waved` of them by waves.
    auto const end_row = [&](index_t r, index_t waved, index_t met, double* row, double mass) {
      index_t const hidden = own.hidden[std::size_t(r)];
      if (met + hidden == 0) return finish(own.query(r), row, mass);  // sees nothing
      gaussian_certificate lost;
      lost.discarded = double(hidden) * beyond / mass;
      lost.truncated = double(waved) * box.waves.missing / mass;
      lost.rounded = 0x1p-53 * 16 + (table.rounding(waved, line.range()) + of_pairs) / mass;
      bool const kept = mass > 0 && lost.truncated <= wave_boxes::by_waves * tolerance &&
                        lost.discarded <= wave_boxes::by_distance * tolerance &&
                        lost.rounded <= wave_boxes::by_rounding * tolerance;
      if (!kept) return late(own.query(r));
      worst.include(lost);
      finish(own.query(r), row, mass);
    };
    walk_blocks(
        own, 0, own.seen.back(), size, 0, tiles,
        [&](index_t first, index_t last) {
          for (index_t s = first; s < last && finite; ++s) {
            tiles.load_key(s - first, own.key(s), in.v.row(b, group, own.key(s)), in.v.steps().feature);
            if (s + size < own.seen.back()) fetch_row(own.key(s + size));
          }
          finite = finite && tiles.values().finite();
        },
        [&](std::span<index_t const> queries, index_t, index_t) {
          table.begin_rows(tiles, index_t(queries.size()),
                           [&](index_t t) { return of_q[std::size_t(queries[std::size_t(t)])] - center; });
        },
        [&](std::span<index_t const> count, index_t r, index_t first) {
          if (!finite) return;
          ++worst.boxes;
          ++worst.expanded;
          for (index_t t = 0; t < index_t(count.size()); ++t)
            end_row(r + t, first, first + count[std::size_t(t)], tiles.row(t), tiles.mass(t));
        },
        [&](index_t first, index_t last) {
          if (!finite) return;
          auto const place = [&](index_t s) { return of_k[std::size_t(own.key(first + s))] - center; };
          table.accumulate(last - first, place, tiles.values());
        });
  }
  return finite ? line.work() : 0;
}

}  // namespace attune::line::detail
