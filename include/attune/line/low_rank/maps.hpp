// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   e^(-(q - k)^2 / tau)  ~  <phi(q), phi(k)>
//
// Two ways to write the Gauss kernel on a line as a product of a few features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include <attune/line/features.hpp>

namespace attune::line::detail {

/// Uniform in (0, 1), the same on every machine.
class uniform_stream {
 public:
  explicit uniform_stream(std::uint64_t seed) : state_(seed) {}
  double next() {  // SplitMix64
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return (double((x ^ (x >> 31)) >> 11) + 0.5) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

class fourier_map {
 public:
  fourier_map(fourier_features const& op, double tau, std::span<double const>)
      : factor_(1 / std::sqrt(double(op.features))) {
    uniform_stream draw(op.seed);
    for (index_t m = 0; m < op.features; ++m) {  // Box-Muller transform
      double const radius = std::sqrt(-2 * std::log(draw.next())), angle = 2 * std::numbers::pi * draw.next();
      frequency_.push_back(std::sqrt(2 / tau) * radius * std::cos(angle));
    }
  }
  index_t size() const { return 2 * index_t(frequency_.size()); }
  /// phi(x) and phi'(x)
  void operator()(double x, double* phi, double* slope) const {
    for (std::size_t m = 0; m < frequency_.size(); ++m) {
      double const w = frequency_[m], c = factor_ * std::cos(w * x), s = factor_ * std::sin(w * x);
      phi[2 * m] = c;
      phi[2 * m + 1] = s;
      slope[2 * m] = -w * s;
      slope[2 * m + 1] = w * c;
    }
  }

 private:
  double factor_;
  std::vector<double> frequency_;
};

class nystroem_map {
 public:
  /// k is ascending. phi = L^-1 kappa(z, x) with L L' = kappa(z, z) plus a jitter of the size of its rounding error.
  nystroem_map(nystroem const& op, double tau, std::span<double const> k) : tau_(tau) {
    index_t const n = index_t(k.size()), most = (std::min)(op.landmarks, n);
    for (index_t m = 0; m < most; ++m) place_.push_back(k[std::size_t((2 * m + 1) * n / (2 * most))]);
    std::size_t const r = place_.size();
    factor_.assign(r * r, 0.0);
    for (std::size_t a = 0; a < r; ++a)
      for (std::size_t b = 0; b <= a; ++b) {
        double sum = kernel(place_[a] - place_[b]) + (a == b ? 1e-13 * double(r) : 0);
        for (std::size_t c = 0; c < b; ++c) sum -= factor_[a * r + c] * factor_[b * r + c];
        factor_[a * r + b] = a == b ? std::sqrt((std::max)(sum, 1e-14)) : sum / factor_[b * r + b];
      }
  }
  index_t size() const { return index_t(place_.size()); }
  void operator()(double x, double* phi, double* slope) const {
    for (std::size_t a = 0; a < place_.size(); ++a) {
      double const e = x - place_[a];
      phi[a] = kernel(e);
      slope[a] = -2 * e / tau_ * phi[a];
    }
    solve(phi);
    solve(slope);
  }

 private:
  double kernel(double e) const { return std::exp(-e * e / tau_); }
  void solve(double* x) const {
    std::size_t const r = place_.size();
    for (std::size_t a = 0; a < r; ++a) {
      double sum = x[a];
      for (std::size_t b = 0; b < a; ++b) sum -= factor_[a * r + b] * x[b];
      x[a] = sum / factor_[a * r + a];
    }
  }

  double tau_;
  std::vector<double> place_, factor_;
};

}  // namespace attune::line::detail
