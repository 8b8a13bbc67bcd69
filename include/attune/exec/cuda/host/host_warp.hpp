// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The warp vocabulary on the host: 32 lanes side by side, the fragment layouts of PTX, bank conflicts counted.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <attune/core/storage.hpp>

namespace attune::testing {

/// A number that each lane of a warp has.
template <class T>
struct lanes {
  T v[32];  ///< by lane
};

/// Costs of the programs on host warps: rounds of shared memory against the fewest there could be.
struct warp_tally {
  long loads = 0,      ///< ldmatrix; 4 rounds each at least
      load_waves = 0;  ///< their rounds
  long copies = 0,     ///< 16-byte copies; 4 rounds each at least
      copy_waves = 0;  ///< their rounds
  long products = 0;   ///< mma
};

/// The warps of a block run one after the other; a warp's copies land at once.
struct host_warp {
  /// See exec_cuda::warp_vocabulary.
  template <class T>
  using of = lanes<T>;
  using shared = unsigned char*;   ///< the block's memory
  static inline warp_tally tally;  ///< counts what the warps do
  /// Adds as the tensor cores of an H100 do: the terms and the accumulator are cut to two bits more than a float has at
  /// the largest of them, and so is their sum to a float. Otherwise sums are rounded to nearest, once.
  static inline bool truncates = false;

  /// See exec_cuda::warp_vocabulary.
  template <class F>
  static void for_lanes(F const& f) {
    for (int l = 0; l < 32; ++l) f(l);
  }
  /// See exec_cuda::warp_vocabulary.
  template <class F>
  static auto each_lane(F const& f) {
    lanes<decltype(f(0))> r;
    for (int l = 0; l < 32; ++l) r.v[l] = f(l);
    return r;
  }
  /// See exec_cuda::warp_vocabulary.
  template <class T>
  static T& at(lanes<T>& x, int l) {
    return x.v[l];
  }
  /// See exec_cuda::warp_vocabulary.
  template <class T>
  static T const& at(lanes<T> const& x, int l) {
    return x.v[l];
  }
  /// See exec_cuda::warp_vocabulary.
  template <class T>
  static lanes<T> shfl_xor(lanes<T> const& x, int mask) {
    return each_lane([&](int l) { return x.v[l ^ mask]; });
  }
  /// See exec_cuda::warp_vocabulary.
  template <class T>
  static lanes<T> shfl(lanes<T> const& x, lanes<int> const& from) {
    return each_lane([&](int l) { return x.v[from.v[l]]; });
  }
  /// See exec_cuda::warp_vocabulary.
  static bool any(lanes<bool> const& x) {
    return std::any_of(x.v, x.v + 32, [](bool y) { return y; });
  }
  /// See exec_cuda::warp_vocabulary.
  template <class E>
  static lanes<std::uint32_t> pack(lanes<float> const& low, lanes<float> const& high) {
    return each_lane([&](int l) { return E(low.v[l]).bits | std::uint32_t(E(high.v[l]).bits) << 16; });
  }
  /// See exec_cuda::warp_vocabulary.
  template <class E>
  static void unpack(lanes<std::uint32_t> const& pair, lanes<float>& low, lanes<float>& high) {
    for (int l = 0; l < 32; ++l) {
      low.v[l] = float(number<E>(std::uint16_t(pair.v[l])));
      high.v[l] = float(number<E>(std::uint16_t(pair.v[l] >> 16)));
    }
  }
  /// See exec_cuda::warp_vocabulary.
  static void ldmatrix4(lanes<std::uint32_t> (&r)[4], shared base, lanes<std::uint32_t> const& at, bool transposed) {
    for (int m = 0; m < 4; ++m) {
      tally.load_waves += waves(at, 8 * m);
      for (int l = 0; l < 32; ++l) {
        std::uint32_t word = 0;
        for (int half = 0; half < 2; ++half) {
          int const row = transposed ? 2 * (l % 4) + half : l / 4, column = transposed ? l / 4 : 2 * (l % 4) + half;
          std::uint16_t x;
          std::memcpy(&x, base + at.v[8 * m + row] + 2 * column, 2);
          word |= std::uint32_t(x) << (16 * half);
        }
        r[m].v[l] = word;
      }
    }
    ++tally.loads;
  }
  /// See exec_cuda::warp_vocabulary.
  template <class E>
  static void mma(lanes<float> (&d)[4], lanes<std::uint32_t> const (&a)[4], lanes<std::uint32_t> const& b0,
                  lanes<std::uint32_t> const& b1) {
    ++tally.products;
    float x[16][16], y[16][8];
    auto const low = [](std::uint32_t w) { return float(number<E>(std::uint16_t(w))); };
    auto const high = [](std::uint32_t w) { return float(number<E>(std::uint16_t(w >> 16))); };
    for (int l = 0; l < 32; ++l) {
      int const g = l / 4, t = l % 4;
      for (int k = 0; k < 4; ++k) {
        int const row = g + (k % 2) * 8, column = 2 * t + (k / 2) * 8;
        x[row][column] = low(a[k].v[l]);
        x[row][column + 1] = high(a[k].v[l]);
      }
      y[2 * t][g] = low(b0.v[l]);
      y[2 * t + 1][g] = high(b0.v[l]);
      y[2 * t + 8][g] = low(b1.v[l]);
      y[2 * t + 9][g] = high(b1.v[l]);
    }
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 4; ++e) {
        int const row = l / 4 + (e / 2) * 8, column = 2 * (l % 4) + e % 2;
        double terms[17] = {double(d[e].v[l])}, sum = terms[0];
        for (int k = 0; k < 16; ++k) sum += terms[k + 1] = double(x[row][k]) * double(y[k][column]);
        d[e].v[l] = truncates && std::isfinite(sum) ? truncated_sum(terms) : float(sum);
      }
  }
  /// mma of a sum that begins at 0.
  template <class E>
  static void mma_first(lanes<float> (&d)[4], lanes<std::uint32_t> const (&a)[4], lanes<std::uint32_t> const& b0,
                        lanes<std::uint32_t> const& b1) {
    for (auto& x : d) x = {};
    mma<E>(d, a, b0, b1);
  }
  /// See exec_cuda::warp_vocabulary.
  static void copy16(shared base, lanes<std::uint32_t> const& to, lanes<unsigned char const*> const& from,
                     lanes<bool> const& inside) {
    for (int q = 0; q < 4; ++q) tally.copy_waves += waves(to, 8 * q);
    ++tally.copies;
    for (int l = 0; l < 32; ++l) {
      if (inside.v[l])
        std::memcpy(base + to.v[l], from.v[l], 16);
      else
        std::memset(base + to.v[l], 0, 16);
    }
  }
  /// See exec_cuda::warp_vocabulary.
  static void commit() {}
  /// See exec_cuda::warp_vocabulary.
  template <int>
  static void wait() {}
  /// See exec_cuda::warp_vocabulary.
  static void sync() {}
  /// See exec_cuda::warp_vocabulary.
  static bool sync_or(lanes<bool> const& x) { return any(x); }
  /// See exec_cuda::warp_vocabulary.
  static void read16(lanes<std::uint32_t> (&r)[4], shared base, lanes<std::uint32_t> const& at) {
    for (int l = 0; l < 32; ++l)
      for (int n = 0; n < 4; ++n) std::memcpy(&r[n].v[l], base + at.v[l] + 4 * n, 4);
  }
  /// See exec_cuda::warp_vocabulary.
  static void write16(shared base, lanes<std::uint32_t> const& at, lanes<std::uint32_t> const (&r)[4]) {
    for (int l = 0; l < 32; ++l)
      for (int n = 0; n < 4; ++n) std::memcpy(base + at.v[l] + 4 * n, &r[n].v[l], 4);
  }
  /// See exec_cuda::warp_vocabulary.
  static lanes<std::uint32_t> read4(shared base, lanes<std::uint32_t> const& at) {
    return each_lane([&](int l) {
      std::uint32_t x;
      std::memcpy(&x, base + at.v[l], 4);
      return x;
    });
  }
  /// See exec_cuda::warp_vocabulary.
  static int once_more(int warp) { return warp; }
  /// See exec_cuda::warp_vocabulary.
  template <class F>
  static void all_warps(int, int warps, F const& f) {
    for (int w = 0; w < warps; ++w) f(w);
  }

 private:
  static float truncated_sum(double const (&terms)[17]) {
    double most = 0;
    std::int64_t whole = 0;
    for (double t : terms) most = (std::max)(most, std::abs(t));
    if (most == 0) return 0;
    auto const exponent = std::bit_cast<std::uint64_t>(most) >> 52;    // 1023 more than the exponent; never subnormal
    double const up = std::bit_cast<double>((2071 - exponent) << 52);  // 25 - exponent
    for (double t : terms) whole += std::int64_t(t * up);
    double const sum = double(whole) / up;
    float const rounded = float(sum);
    return std::abs(double(rounded)) > std::abs(sum) ? std::nextafter(rounded, 0.f) : rounded;
  }
  template <class E>
  static E number(std::uint16_t bits) {
    E x;
    x.bits = bits;
    return x;
  }
  /// Rounds in which 8 lanes read 16 bytes each: the most 16-byte columns, of 8, that share banks.
  static long waves(lanes<std::uint32_t> const& at, int first) {
    int used[8] = {}, most = 0;
    for (int l = first; l < first + 8; ++l) {
      bool again = false;
      for (int k = first; k < l; ++k) again = again || at.v[k] == at.v[l];
      if (!again) most = (std::max)(most, ++used[at.v[l] / 16 % 8]);
    }
    return most;
  }
};

}  // namespace attune::testing
