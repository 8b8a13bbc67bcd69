// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   terms_m = sum_s x_s^m row_s          out_t = sum_m weight_tm terms_m
//
// The two products of a fast transform, by the register-blocked products of the CPU executor: from many rows to a few terms, and back.
#pragma once

#include <algorithm>
#include <cmath>

#include <attune/exec/cpu/aligned_buffer.hpp>
#include <attune/exec/cpu/microkernel.hpp>

namespace attune::sorted::detail {

inline constexpr int most_terms = 40;

/// Terms 0 ... count - 1, rows of `width` numbers.
template <class Arch>
class series {
  using tile = exec_cpu::tiling<double, Arch>;
  static constexpr index_t sources = 64;  ///< rows at a time: their weights stay in L1
  static constexpr index_t tiles = (most_terms + 1 + tile::queries - 1) / tile::queries, row_step = tiles * tile::queries;

 public:
  static constexpr index_t targets = tile::queries;  ///< of one evaluation

  explicit series(index_t width)
      : width_(width), parts_(tiles * width * tile::queries), terms_(width * row_step), powers_(sources * tile::queries),
        weights_((most_terms + 1) * tile::queries), out_(width * tile::queries) {}

  /// terms_m = sum_s start(s) ratio(s)^m row_s for s in [first, last), over m! if asked; rows `step` numbers apart, row_0 at `rows`.
  template <class Start, class Ratio>
  void gather(int count, double const* rows, index_t step, index_t first, index_t last, bool over_factorials,
              Start const& start, Ratio const& ratio) {
    index_t const used = (count + tile::queries - 1) / tile::queries;
    std::fill(parts_.data(), parts_.data() + used * width_ * tile::queries, 0.0);
    std::fill(sizes_, sizes_ + count, 0.0);
    double x[sources], by[sources];
    for (index_t at = first; at < last; at += sources) {
      index_t const n = std::min(sources, last - at);
      for (index_t s = 0; s < n; ++s) {
        x[s] = start(at + s);
        by[s] = ratio(at + s);
      }
      for (index_t t = 0; t < used; ++t) {
        for (index_t c = 0; c < tile::queries; ++c) {
          index_t const m = t * tile::queries + c;
          double const next = over_factorials ? 1 / double(m + 1) : 1;
          double size = 0;
          for (index_t s = 0; s < n; ++s) {
            powers_.data()[s * tile::queries + c] = x[s];
            size += std::fabs(x[s]);
            x[s] *= by[s] * next;
          }
          if (m < count) sizes_[m] += size;
        }
        exec_cpu::accumulate<double, Arch>(parts_.data() + t * width_ * tile::queries, rows + at * step, step, powers_.data(),
                                           n, width_);
      }
    }
    for (index_t f = 0; f < width_; ++f)
      for (index_t t = 0; t < used; ++t)
        std::copy_n(parts_.data() + (t * width_ + f) * tile::queries, tile::queries,
                    terms_.data() + f * row_step + t * tile::queries);
  }
  /// sum_s |start ratio^m|, over m!
  double size(int m) const { return sizes_[m]; }

  /// What evaluate() multiplies the terms with: [count][targets].
  double* weights() { return weights_.data(); }
  /// out[feature][targets]
  double const* evaluate(int count) {
    exec_cpu::contract<double, Arch>(out_.data(), terms_.data(), row_step, weights_.data(), count, width_);
    return out_.data();
  }

 private:
  index_t width_;
  exec_cpu::aligned_buffer<double> parts_, terms_, powers_, weights_, out_;
  double sizes_[most_terms + 1] = {};
};

}  // namespace attune::sorted::detail
