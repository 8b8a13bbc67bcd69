// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   (c0, c1, c2, c3) -> 10 rounds of  c0' = hi(M1 c2) ^ c1 ^ k0,  c1' = lo(M1 c2),  c2' = hi(M0 c0) ^ c3 ^ k1,
//                                     c3' = lo(M0 c0)
//
// The counter-based random numbers Philox4x32-10 (Salmon et al.: "Parallel random numbers: as easy as 1, 2, 3", 2011).
// There is no state: any executor computes the number of any pair, in any order, and gets the same bits.
//
// The random number of a pair:
//   key      k0, k1: the low and the high half of the 64-bit seed
//   counter  c0: key position / 4    c1: query position i + offset    c2: query head    c3: batch element
//   result   word r belongs to key position 4 c0 + r: one call serves four neighboring keys
//   number   the upper 24 bits of the word, times 2^-24: exact in float and in double
// Positions are those in the whole sequence, each taken modulo 2^32. So the numbers depend on neither threads, tiles,
// splits of the keys nor pages.
#pragma once

#include <cstdint>

#include <attune/config.hpp>
#include <attune/core/tensor.hpp>

namespace attune {

/// Philox4x32-10.
struct philox {
  static constexpr int rounds = 10;                           ///< the number of rounds
  static constexpr std::uint32_t first_factor = 0xD2511F53u,  ///< M0
      second_factor = 0xCD9E8D57u;                            ///< M1
  static constexpr std::uint32_t first_step = 0x9E3779B9u,    ///< added to k0 after each round
      second_step = 0xBB67AE85u;                              ///< added to k1 after each round

  /// Four words: a counter, or the result.
  struct words {
    std::uint32_t at[4];  ///< the words in order
  };

  /// The four random words of a counter, for the key (k0, k1).
  ATTUNE_HD static constexpr words draw(words c, std::uint32_t k0, std::uint32_t k1) {
    for (int n = 0; n < rounds; ++n) {
      std::uint64_t const a = std::uint64_t(first_factor) * c.at[0], b = std::uint64_t(second_factor) * c.at[2];
      c = {{std::uint32_t(b >> 32) ^ c.at[1] ^ k0, std::uint32_t(b), std::uint32_t(a >> 32) ^ c.at[3] ^ k1,
            std::uint32_t(a)}};
      k0 += first_step;
      k1 += second_step;
    }
    return c;
  }
};

namespace detail {

/// The position of a key's random number: the counter word that it shares with its neighbors, and its word of the
/// result.
struct random_place {
  static constexpr index_t keys = 4;  ///< keys per call
  ATTUNE_HD static constexpr index_t group(index_t key) { return key / keys; }
  ATTUNE_HD static constexpr int word(index_t key) { return int(key % keys); }
};

/// The random number of a word, in [0, 1): a multiple of 2^-24.
ATTUNE_HD constexpr float unit_number(std::uint32_t word) { return float(word >> 8) * 0x1p-24f; }

/// The random number of a pair. `position` is i + offset.
ATTUNE_HD constexpr float pair_number(std::uint64_t seed, index_t batch, index_t head, index_t position, index_t key) {
  philox::words const all = philox::draw(
      {{std::uint32_t(random_place::group(key)), std::uint32_t(position), std::uint32_t(head), std::uint32_t(batch)}},
      std::uint32_t(seed), std::uint32_t(seed >> 32));
  return unit_number(all.at[random_place::word(key)]);
}

}  // namespace detail
}  // namespace attune
