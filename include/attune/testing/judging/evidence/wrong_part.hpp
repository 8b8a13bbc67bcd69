// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   wrong_indices(sums, numbers, gate)     the heads, queries or features that hold nearly all of an excess
//
// Which indices of an axis are wrong: one by one, or as tiles and halves of tiles where each alone shows too little.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace attune::testing::detail {

/// The largest sum of n squared standard normal numbers that is not `gate` standard deviations too large (the
/// approximation of Wilson and Hilferty).
inline double largest_square_sum(double n, double gate) {
  double const root = 1 - 2 / (9 * n) + gate * std::sqrt(2 / (9 * n));
  return n * root * root * root;
}

/// Squares (residual / sigma)^2 of the numbers with one index.
struct index_energy {
  double square = 0,    ///< their sum
      count = 0,        ///< how many they are
      independent = 0;  ///< how many of them have independent errors
  void add(index_energy const& x) { square += x.square, count += x.count, independent += x.independent; }
  bool exceeds(double gate) const {
    return count > 0 && independent > 0 && square > count * largest_square_sum(independent, gate) / independent;
  }
};

/// The indices that hold at least 95 % of the excess: single ones, blocks of a power of two, or the first or second
/// halves of tiles, the finest of these. All, if no part of them does. Others are right as far as one can see: their
/// mean is the usual one, or far below the wrong ones'.
inline std::vector<bool> wrong_indices(std::vector<index_energy> const& of, double gate) {
  constexpr double held_at_least = 0.95, uncertain = 0.1;
  std::size_t const n = of.size();
  std::vector<bool> const everything(n, true);
  auto const mean_of = [](index_energy const& x) { return x.count > 0 ? x.square / x.count : 0; };
  auto const quantile = [&](std::vector<double> x, double part) {
    if (x.empty()) return 0.;
    auto const at = x.begin() + std::ptrdiff_t(part * double(x.size() - 1));
    std::nth_element(x.begin(), at, x.end());
    return *at;
  };
  std::vector<double> means;
  for (index_energy const& x : of)
    if (x.count > 0) means.push_back(mean_of(x));
  double const usual = std::fmin(1, quantile(means, 0.25));
  auto const excess = [&](index_energy const& x) { return std::fmax(0, x.square - usual * x.count); };
  double total = 0;
  for (index_energy const& x : of) total += excess(x);
  if (n < 2 || !(total > 0)) return everything;
  std::vector<bool> best = everything;
  auto const try_parts = [&](std::size_t parts, auto const& part_of) {
    std::vector<index_energy> sums(parts);
    for (std::size_t k = 0; k < n; ++k) sums[part_of(k)].add(of[k]);
    std::vector<double> wrong;
    for (index_energy const& x : sums)
      if (x.exceeds(gate)) wrong.push_back(mean_of(x));
    if (wrong.empty()) return false;
    double const close_by = usual + uncertain * (quantile(wrong, 0.5) - usual);
    std::vector<bool> has(n);
    double held = 0;
    std::size_t count = 0;
    for (std::size_t k = 0; k < n; ++k) {
      index_energy const& x = sums[part_of(k)];
      has[k] = x.exceeds(gate) || mean_of(x) > close_by;
      if (has[k]) held += excess(of[k]), ++count;
    }
    if (held < held_at_least * total || count == n) return false;
    best = has;
    return true;
  };
  if (try_parts(n, [](std::size_t k) { return k; })) return best;
  for (std::size_t tile = 2; tile < n; tile *= 2)
    if (try_parts((n + tile - 1) / tile, [=](std::size_t k) { return k / tile; })) return best;
  for (std::size_t tile = 8; tile <= 128 && tile < n; tile *= 2)
    if (try_parts(2, [=](std::size_t k) { return 2 * (k % tile) / tile; })) return best;
  return everything;
}

}  // namespace attune::testing::detail
