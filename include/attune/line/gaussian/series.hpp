// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   terms_m = sum_s x_s^m row_s          out_t = sum_m weight_tm terms_m
//
// The products of a fast transform, by the register-blocked products of the CPU executor: from many rows to a few
// terms, from terms to terms, and from terms to rows.
#pragma once

#include <algorithm>
#include <cmath>

#include <attune/exec/cpu/products.hpp>

namespace attune::line::detail {

inline constexpr int most_terms = 40;

/// Terms 0 ... count - 1, rows of `width` numbers.
template <class Arch>
class series {
  using tile = exec_cpu::tiling<double, Arch>;
  static constexpr index_t sources = 64;  ///< rows at a time: their weights stay in L1
  static constexpr index_t tiles = (most_terms + 1 + tile::queries - 1) / tile::queries,
                           row_step = tiles * tile::queries;

 public:
  static constexpr index_t targets = tile::queries;  ///< per evaluation

  explicit series(index_t width)
      : width_(width), parts_(tiles * width * tile::queries), terms_(width * row_step),
        powers_(sources * tile::queries), weights_((most_terms + 1) * tile::queries), out_(width * tile::queries) {}

  /// terms_m = sum_s start(s) ratio(s)^m row_s for s in [first, last), divided by m! if over_factorials is true. Rows
  /// are `step` numbers apart, with row_0 at `rows`.
  template <class Start, class Ratio>
  void gather(int count, double const* rows, index_t step, index_t first, index_t last, bool over_factorials,
              Start const& start, Ratio const& ratio) {
    begin(count);
    double x[sources], by[sources];
    for (index_t at = first; at < last; at += sources) {
      index_t const n = (std::min)(sources, last - at);
      for (index_t s = 0; s < n; ++s) {
        x[s] = start(at + s);
        by[s] = ratio(at + s);
      }
      add_in_tiles(rows + at * step, step, n, [&](index_t s, index_t m) {
        double const now = x[s];
        x[s] *= by[s] * (over_factorials ? 1 / double(m + 1) : 1);
        return now;
      });
    }
    end();
  }

  /// The same in steps, with any weights: begin, add as often as needed, end.
  void begin(int count) {
    used_ = (count + tile::queries - 1) / tile::queries;
    std::fill(parts_.data(), parts_.data() + used_ * width_ * tile::queries, 0.0);
  }
  /// terms_m += sum_s weight(s, m) row_s for s in [0, n)
  template <class Weight>
  void add(double const* rows, index_t step, index_t n, Weight const& weight) {
    for (index_t at = 0; at < n; at += sources)
      add_in_tiles(rows + at * step, step, (std::min)(sources, n - at),
                   [&](index_t s, index_t m) { return weight(at + s, m); });
  }
  void end() {
    for (index_t f = 0; f < width_; ++f)
      for (index_t t = 0; t < used_; ++t)
        std::copy_n(parts_.data() + (t * width_ + f) * tile::queries, tile::queries,
                    terms_.data() + f * row_step + t * tile::queries);
  }
  double term(index_t m, index_t f) const { return terms_.data()[f * row_step + m]; }

  /// The factors of the terms in evaluate(): [count][targets].
  double* weights() { return weights_.data(); }
  /// out[feature][targets]
  double const* evaluate(int count) {
    exec_cpu::contract<double, Arch>(out_.data(), terms_.data(), row_step, weights_.data(), count, width_);
    return out_.data();
  }

 private:
  /// weight(s, m) is called for m = 0, 1, ... in this order for each s, up to a whole number of tiles.
  template <class Weight>
  void add_in_tiles(double const* rows, index_t step, index_t n, Weight const& weight) {
    for (index_t t = 0; t < used_; ++t) {
      for (index_t c = 0; c < tile::queries; ++c)
        for (index_t s = 0; s < n; ++s) powers_.data()[s * tile::queries + c] = weight(s, t * tile::queries + c);
      exec_cpu::accumulate<double, Arch>(parts_.data() + t * width_ * tile::queries, rows, step, powers_.data(), n,
                                         width_);
    }
  }

  index_t width_, used_ = 0;
  exec_cpu::aligned_buffer<double> parts_, terms_, powers_, weights_, out_;
};

}  // namespace attune::line::detail
