// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-|q - k| / tau) = min(a b, 1 / (a b)),   a = e^(-(q - c) / tau),  b = e^((k - c) / tau)
//
// On a line of at most a few hundred tau, every weight is a product of two numbers that fit a double. No anchors are
// needed, and no exponential per pair.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include <attune/line/blocks/cells.hpp>

namespace attune::line::detail {

/// The numbers of a position: (a, 1/a) of a query, (b, 1/b) of a key.
struct weigh_laplacian {
  static constexpr std::size_t numbers = 2;
  template <class B>
  ATTUNE_INLINE B operator()(B const (&q)[2], B const (&k)[2]) const {
    return math::smaller(B(q[0] * k[0]), B(q[1] * k[1]));
  }
};

/// Sums over the keys of earlier blocks: weighted by b for keys left of a cell, by 1/b for keys right of it.
template <class Arch>
class laplacian_far {
 public:
  laplacian_far(staircase const& stairs, line_cells const& cells, pair_numbers<2> const& of, index_t width)
      : stairs_(stairs), of_(of), cells_(cells.count()), left_(cells_, width), right_(cells_, width) {}
  void accumulate(block_keys const& keys, index_t first, panels<Arch> const& values) {
    for (std::size_t side = 0; side < 2; ++side) {
      cell_rows<Arch>& to = side == 0 ? left_ : right_;
      factor_.clear();
      for (index_t const s : keys.number) factor_.push_back(of_.k[side][std::size_t(stairs_.key(first + s))]);
      double mass = 0;
      auto const take = [&](std::size_t n) { mass += factor_[n]; };
      auto const give = [&](index_t c) { to.mass(c) += mass; };
      side == 0 ? keys.from_left(cells_, take, give) : keys.from_right(take, give);
      for (index_t p = 0; p < values.count(); ++p) {
        if (side == 0)
          add_panel<false>(keys, values.panel(p), to.panel(p));
        else
          add_panel<true>(keys, values.panel(p), to.panel(p));
      }
    }
  }
  void add_to(double* row, double& mass, double const* earlier, index_t i, index_t c) const {
    double const a = of_.q[0][std::size_t(i)], b = of_.q[1][std::size_t(i)];
    cell_rows<Arch>::add_to(row, earlier, c, left_, a, right_, b);
    mass += a * left_.mass(c) + b * right_.mass(c);
  }

 private:
  template <bool FromRight>
  ATTUNE_NOINLINE void add_panel(block_keys const& keys, double const* from, double* to) const {
    constexpr index_t columns = panels<Arch>::columns;
    panel_sum<Arch> sum;
    auto const take = [&](std::size_t n) { sum.add(factor_[n], from + keys.number[n] * columns); };
    auto const give = [&](index_t c) { sum.give(to + c * columns); };
    if constexpr (FromRight)
      keys.from_right(take, give);
    else
      keys.from_left(cells_, take, give);
  }

  staircase const& stairs_;
  pair_numbers<2> const& of_;
  index_t cells_;
  cell_rows<Arch> left_, right_;
  std::vector<double> factor_;
};

/// Staircases of one head that are processed by cells, in double.
template <class T, class Arch>
class laplacian_cells {
  static constexpr double longest = 300;  ///< of a line, in tau: numbers of a position are within e^150 = 1.4e65 of 1

 public:
  laplacian_cells(arrays<T> const& in, extents const& e, index_t b, index_t h, scalars<wide<T>> const& on, wide<T> tau)
      : v_(in.v), b_(b), h_(e.value_head(h)), on_(on), tau_(tau) {}
  laplacian_cells(laplacian_cells const&) = delete;  // numbers_ contains views of this object's vectors
  /// Calls finish(i, row, mass) for the sums of a staircase, relative to e^0. Returns false if cells do not apply.
  template <class Finish>
  bool walk(staircase const& stairs, Finish const& finish) {
    if constexpr (std::is_same_v<wide<T>, double>) {
      if (!worth_cells(stairs) || !fits()) return false;
      cell_walk<laplacian_far, weigh_laplacian, Arch, T>(stairs, on_, numbers_, v_, b_, h_)(finish);
      return true;
    }
    return false;
  }

 private:
  /// Computes the numbers of the head, once. False if the line is too long for them, or if values are so large or so
  /// small that sums of values times these numbers would overflow or lose digits.
  bool fits() {
    if (fits_) return *fits_;
    auto const [least_q, most_q] = std::minmax_element(on_.q.begin(), on_.q.end());
    auto const [least_k, most_k] = std::minmax_element(on_.k.begin(), on_.k.end());
    double const least = (std::min)(*least_q, *least_k), most = (std::max)(*most_q, *most_k),
                 value = largest_value(v_, b_, h_);
    fits_ = (most - least) / tau_ <= longest && (value == 0 || (value >= 1e-150 && value <= 1e230));
    if (*fits_) {
      double const center = least + (most - least) / 2;
      put(on_.q, center, -1, of_q_, numbers_.q);
      put(on_.k, center, 1, of_k_, numbers_.k);
    }
    return *fits_;
  }
  /// e^x and e^-x of x = sign (at - center) / tau
  void put(std::vector<double> const& at, double center, double sign, std::array<std::vector<double>, 2>& to,
           std::array<std::span<double const>, 2>& seen) const {
    using batch = xsimd::batch<double, Arch>;
    constexpr std::size_t lanes = batch::size;
    for (auto& x : to) x.resize(at.size());
    for (std::size_t n = 0; n < at.size(); n += lanes) {
      std::size_t const some = (std::min)(lanes, at.size() - n);
      alignas(64) double x[lanes] = {}, e[lanes];
      for (std::size_t l = 0; l < some; ++l) x[l] = sign * ((at[n + l] - center) / tau_);
      for (int side = 0; side < 2; ++side) {
        batch const y = batch::load_aligned(x);
        math::exp(side == 0 ? y : -y).store_aligned(e);
        for (std::size_t l = 0; l < some; ++l) to[std::size_t(side)][n + l] = e[l];
      }
    }
    for (std::size_t side = 0; side < 2; ++side) seen[side] = to[side];
  }

  tensor<T const> v_;
  index_t b_, h_;
  scalars<wide<T>> const& on_;
  wide<T> tau_;
  std::optional<bool> fits_;
  std::array<std::vector<double>, 2> of_q_, of_k_;
  pair_numbers<2> numbers_;  ///< views of of_q_ and of_k_
};

}  // namespace attune::line::detail
