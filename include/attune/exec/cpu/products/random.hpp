// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   u[0..3] = the random numbers of four neighboring keys      lanes: queries, or groups of four keys
//
// The numbers of core/philox.hpp for a batch of lanes, with the same bits. A 64-bit lane holds one word in its lower
// half. The product of two lower halves is one instruction. The upper halves may hold anything: nothing reads them.
#pragma once

#include <cstdint>

#include <attune/core/philox.hpp>
#include <attune/core/xsimd.hpp>

namespace attune::exec_cpu {

/// The counters of a batch's lanes, as words: floats take two 64-bit lanes' worth of batches, doubles one.
template <class T, class Arch>
struct random_lanes {
  using words = xsimd::batch<std::uint64_t, Arch>;
  static constexpr int lanes = int(xsimd::batch<T, Arch>::size), halves = lanes / int(words::size);
  words at[std::size_t(halves)];

  /// The same word in every lane.
  explicit random_lanes(std::uint32_t word) {
    for (words& x : at) x = words(std::uint64_t(word));
  }
  /// word(l) for lane l. Lane l is in half l % halves: so the halves combine by a shift.
  template <class Word>
  static random_lanes of(Word const& word) {
    alignas(64) std::uint64_t each[words::size];
    random_lanes to(0);
    for (int half = 0; half < halves; ++half) {
      for (int l = 0; l < int(words::size); ++l) each[l] = std::uint64_t(std::uint32_t(word(l * halves + half)));
      to.at[half] = words::load_aligned(each);
    }
    return to;
  }
};

/// Random numbers for (seed, batch element, head).
template <class T, class Arch>
class random_numbers {
 public:
  using batch = xsimd::batch<T, Arch>;
  using counters = random_lanes<T, Arch>;
  using words = typename counters::words;
  static constexpr int halves = counters::halves;

  random_numbers(std::uint64_t seed, index_t b, index_t h) : batch_(std::uint32_t(b)), head_(std::uint32_t(h)) {
    std::uint32_t first = std::uint32_t(seed), second = std::uint32_t(seed >> 32);
    for (int n = 0; n < philox::rounds; ++n, first += philox::first_step, second += philox::second_step)
      first_[n] = first, second_[n] = second;
  }

  /// u[r]: the numbers of key 4 group + r and the queries at these positions.
  ATTUNE_INLINE void draw(counters const& group, counters const& position, batch (&u)[4]) const {
    words const first_factor(std::uint64_t{philox::first_factor}), second_factor(std::uint64_t{philox::second_factor});
    words c[4][std::size_t(halves)];
    for (int k = 0; k < halves; ++k) {
      c[0][k] = group.at[k];
      c[1][k] = position.at[k];
      c[2][k] = words(std::uint64_t(head_));
      c[3][k] = words(std::uint64_t(batch_));
    }
#pragma GCC unroll 10
    for (int n = 0; n < philox::rounds; ++n) {
      words const k0(std::uint64_t{first_[n]}), k1(std::uint64_t{second_[n]});
#pragma GCC unroll 2
      for (int k = 0; k < halves; ++k) {
        words const a = simd::product_of_low_halves(first_factor, c[0][k]),
                    b = simd::product_of_low_halves(second_factor, c[2][k]);
        c[0][k] = simd::shifted_down(b, 32) ^ c[1][k] ^ k0;
        c[1][k] = b;
        c[2][k] = simd::shifted_down(a, 32) ^ c[3][k] ^ k1;
        c[3][k] = a;
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) u[r] = unit(c[r]);
  }

 private:
  /// The upper 24 bits of each word, times 2^-24.
  ATTUNE_INLINE static batch unit(words const (&x)[std::size_t(halves)]) {
    using integer = xsimd::as_integer_t<T>;
    words whole;
    if constexpr (halves == 2)
      whole = (simd::shifted_down(x[0], 8) & words(std::uint64_t(0xFFFFFF))) |
              (simd::shifted_up(x[1], 24) & words(std::uint64_t(0xFFFFFF) << 32));
    else
      whole = simd::shifted_down(x[0], 8) & words(std::uint64_t(0xFFFFFF));
    return simd::to_numbers(simd::bits_as<integer>(whole)) * batch(T(0x1p-24));
  }

  std::uint32_t batch_, head_, first_[philox::rounds], second_[philox::rounds];
};

}  // namespace attune::exec_cpu
