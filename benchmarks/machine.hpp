// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the machine can do at this moment: fused multiply-adds in registers, bytes read from memory. The measure of
// everything else.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <attune/attune.hpp>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keeps a result that nobody reads from being optimised away.
inline std::atomic<double> sink_hole;

/// Runs work(thread) on all threads at once; seconds of the slowest.
template <class Work>
double slowest(int threads, Work const& work) {
  std::atomic<int> ready{0};
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        ++ready;
        while (ready < threads) {
        }
        double const start = now();
        work(t);
        seconds[static_cast<std::size_t>(t)] = now() - start;
      });
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

/// FLOP/s of fused multiply-adds that never leave the registers. 12 chains hide the latency of two units.
template <class T, class Arch = xsimd::default_arch>
double fma_rate(int threads) {
  using batch = xsimd::batch<T, Arch>;
  constexpr int chains = 12;
  constexpr long rounds = 2000000;
  double const seconds = slowest(threads, [](int) {
    batch a[chains];
    for (int c = 0; c < chains; ++c) a[c] = batch(T(0.1) * T(c));
    batch x(T(0.999)), y(T(0.001));
    attune::exec_cpu::keep(x);
    attune::exec_cpu::keep(y);
    for (long n = 0; n < rounds; ++n) {
#pragma GCC unroll 12
      for (int c = 0; c < chains; ++c) a[c] = attune::simd::multiply_add(a[c], x, y);
    }
    for (int c = 1; c < chains; ++c) a[0] = a[0] + a[c];
    sink_hole = double(a[0].get(0));
  });
  return threads * double(rounds) * chains * 2 * double(batch::size) / seconds;
}

/// Bytes per second read from memory that no cache holds. The memory, 256 MiB in all, is kept for the next call.
template <class Arch = xsimd::default_arch>
double read_rate(int threads) {
  using batch = xsimd::batch<float, Arch>;
  constexpr std::size_t step = 8 * batch::size;
  std::size_t const n = std::size_t(256) * 1024 * 1024 / sizeof(float) / std::size_t(threads) / step * step;
  static std::vector<std::vector<float>> memory;
  if (memory.size() != std::size_t(threads)) memory.assign(std::size_t(threads), std::vector<float>(n, 1.0f));
  double const seconds = slowest(threads, [&](int t) {
    float const* const p = memory[std::size_t(t)].data();
    batch sum[8];
    for (auto& s : sum) s = batch(0.0f);
    for (std::size_t i = 0; i < n; i += step)
      for (std::size_t c = 0; c < 8; ++c) sum[c] = sum[c] + batch::load_unaligned(p + i + c * batch::size);
    for (std::size_t c = 1; c < 8; ++c) sum[0] = sum[0] + sum[c];
    sink_hole = double(sum[0].get(0));
  });
  return threads * double(n) * sizeof(float) / seconds;
}

}  // namespace bench
