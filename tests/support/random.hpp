// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Random numbers that are the same on every machine, and the environment that steers a random test.
//
// A random test numbers its cases; case n of a run with seed s draws everything from rng(s + n). To repeat one case:
// ATTUNE_SEED=<the printed case seed> ATTUNE_FUZZ_COUNT=1.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>

namespace attune::test {

using index = std::ptrdiff_t;

/// The nearest float, as a double: data that float and double backends read alike.
inline double f32(double x) { return static_cast<double>(static_cast<float>(x)); }

class rng {
 public:
  explicit rng(std::uint64_t seed) : engine_(splitmix(seed)) {}

  std::uint64_t bits() { return engine_(); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal (Box and Muller: std::normal_distribution differs between libraries).
  double normal() { return std::sqrt(-2 * std::log1p(-uniform())) * std::cos(6.283185307179586 * uniform()); }
  /// In [low, high].
  index between(index low, index high) {
    return low + static_cast<index>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return uniform() < probability; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<index>(choices.size()) - 1)];
  }

 private:
  static std::uint64_t splitmix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::mt19937_64 engine_;
};

/// ATTUNE_SEED if set, else a new seed.
inline std::uint64_t fresh_seed() {
  if (char const* text = std::getenv("ATTUNE_SEED")) return std::stoull(text, nullptr, 0);
  std::random_device device;
  return (std::uint64_t{device()} << 16) ^ device();  // short enough to type
}

/// Cases of the longest run: ATTUNE_FUZZ_COUNT if set (sanitizers run fewer). Shorter runs are a share of it.
inline index case_count(double share = 1) {
  char const* text = std::getenv("ATTUNE_FUZZ_COUNT");
  double const wanted = text ? std::stod(text) : 10000;
  return static_cast<index>(std::ceil(share * wanted));
}

}  // namespace attune::test
