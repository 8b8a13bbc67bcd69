// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   sum over keys of earlier blocks left of a cell:  M + (q - p) S,  S = sum v,  M = sum (p - k) v,
//       p: the left edge of the cell
//
// The moments of each cell are relative to its own edge, so nothing cancels wherever the cell lies on the line.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include <attune/line/blocks/cells.hpp>

namespace attune::line::detail {

/// The number of a position: its scalar.
struct weigh_relu {
  static constexpr std::size_t numbers = 1;
  template <class B>
  ATTUNE_INLINE B operator()(B const (&q)[1], B const (&k)[1]) const {
    return math::larger(B(q[0] - k[0]), B(0.0));
  }
};

template <class Arch>
class relu_far {
 public:
  relu_far(staircase const& stairs, line_cells const& cells, pair_numbers<1> const& of, index_t width)
      : stairs_(stairs), cells_(cells), of_(of), sums_(cells.count(), width), moments_(cells.count(), width) {}
  void accumulate(block_keys const& keys, index_t first, panels<Arch> const& values) {
    at_.clear();
    for (index_t const s : keys.number) at_.push_back(of_.k[0][std::size_t(stairs_.key(first + s))]);
    double count = 0, moment = 0, place = at_.front();
    auto const move = [&](double x) {
      moment += (x - place) * count;
      place = x;
    };
    keys.from_left(
        cells_.count(),
        [&](std::size_t n) {
          move(at_[n]);
          ++count;
        },
        [&](index_t c) {
          move(cells_.edge(c));
          sums_.mass(c) += count;
          moments_.mass(c) += moment;
        });
    for (index_t p = 0; p < values.count(); ++p) add_panel(keys, values.panel(p), sums_.panel(p), moments_.panel(p));
  }
  void add_to(double* row, double& mass, double const* earlier, index_t i, index_t c) const {
    double const x = (std::max)(of_.q[0][std::size_t(i)] - cells_.edge(c), 0.0);  // below 0: left of all keys
    cell_rows<Arch>::add_to(row, earlier, c, moments_, 1, sums_, x);
    mass += moments_.mass(c) + x * sums_.mass(c);
  }

 private:
  ATTUNE_NOINLINE void add_panel(block_keys const& keys, double const* from, double* sums, double* moments) const {
    constexpr index_t columns = panels<Arch>::columns;
    panel_sum<Arch> sum, moment;
    double place = at_.front();
    auto const move = [&](double x) {
      moment.add(x - place, sum);
      place = x;
    };
    keys.from_left(
        cells_.count(),
        [&](std::size_t n) {
          move(at_[n]);
          sum.add(1, from + keys.number[n] * columns);
        },
        [&](index_t c) {
          move(cells_.edge(c));
          sum.give(sums + c * columns);
          moment.give(moments + c * columns);
        });
  }

  staircase const& stairs_;
  line_cells const& cells_;
  pair_numbers<1> const& of_;
  cell_rows<Arch> sums_, moments_;
  std::vector<double> at_;
};

/// Staircases of one head that are processed by cells, in double.
template <class T, class Arch>
class relu_cells {
 public:
  relu_cells(arrays<T> const& in, extents const& e, index_t b, index_t h, scalars<wide<T>> const& on)
      : v_(in.v), b_(b), h_(e.value_head(h)), on_(on) {}
  /// Calls finish(i, row, mass) for the sums of a staircase. Returns false if cells do not apply.
  template <class Finish>
  bool walk(staircase const& stairs, Finish const& finish) {
    if constexpr (std::is_same_v<wide<T>, double>) {
      if (!worth_cells(stairs)) return false;
      pair_numbers<1> const scalars{{on_.q}, {on_.k}};
      cell_walk<relu_far, weigh_relu, Arch, T>(stairs, on_, scalars, v_, b_, h_)(finish);
      return true;
    }
    return false;
  }

 private:
  tensor<T const> v_;
  index_t b_, h_;
  scalars<wide<T>> const& on_;
};

}  // namespace attune::line::detail
