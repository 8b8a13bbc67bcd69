// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random numbers that are the same on every machine, so that pages written from them are too.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace apps {

using numbers = std::vector<double>;

class rng {
 public:
  explicit rng(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15u) {}
  double uniform(double low = 0, double high = 1) { return low + (high - low) * double(engine_() >> 11) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log1p(-uniform())) * std::cos(6.283185307179586 * uniform()); }
  std::ptrdiff_t between(std::ptrdiff_t low, std::ptrdiff_t high) {
    return low + std::ptrdiff_t(engine_() % std::uint64_t(high - low + 1));
  }
  numbers normals(std::ptrdiff_t n, double scale = 1) {
    numbers x;
    for (std::ptrdiff_t i = 0; i < n; ++i) x.push_back(scale * normal());
    return x;
  }
  numbers uniforms(std::ptrdiff_t n, double low, double high) {
    numbers x;
    for (std::ptrdiff_t i = 0; i < n; ++i) x.push_back(uniform(low, high));
    return x;
  }
  /// n points on the sphere of radius 1.
  numbers sphere(std::ptrdiff_t n, std::ptrdiff_t width) {
    numbers x;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      numbers const one = normals(width);
      double length = 0;
      for (double v : one) length += v * v;
      for (double v : one) x.push_back(v / std::sqrt(length));
    }
    return x;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace apps
