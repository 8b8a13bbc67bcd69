// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Copies of rows to shared memory, and the search for numbers that are not finite in what was copied.
#pragma once

#include <attune/exec/cuda/tile/config.hpp>

namespace attune::exec_cuda {

template <class W, class C>
struct stage {
  template <class T>
  using of = typename W::template of<T>;
  static constexpr int chunks = C::width / 8;

  /// A lane copies one chunk of the rows r, r + each, ...; operand::hop is the step of `each` rows.
  static constexpr int each = C::threads / chunks;
  static_assert(each * chunks == C::threads && (each % 8 == 0 || each == 4 || each == 2 || each == 1));
  /// Where copy x of a lane goes, from where its copy 0 goes: swizzled(r + x each, chunk) from swizzled(r, chunk).
  ATTUNE_HD static constexpr std::uint32_t moved(std::uint32_t at, int x) {
    return (at ^ std::uint32_t(16 * (x * each & 7))) + std::uint32_t(x * each * 2 * C::width);
  }

  /// Where copy x of each lane of warp w lies in the rows that begin at `from`, a multiple of 128.
  ATTUNE_LANE static of<std::uint32_t> copied(int from, int w, int x) {
    return W::each_lane([&](int l) {
      int const n = l + w * 32;
      return moved(swizzled<C::width>(n / chunks, n % chunks) + std::uint32_t(from), x);
    });
  }

  /// Where this lane's chunk of the rows at `from` begins.
  ATTUNE_LANE static of<unsigned char const*> lane_of(unsigned char const* from, int wide) {
    static_assert(32 % chunks == 0);  // a lane copies the same chunk in every warp
    return W::each_lane([&](int l) { return l % chunks < wide ? from + 16 * (l % chunks) : from; });
  }
  /// Rows [first, first + Rows); 0 for chunks that a row does not have. `from`: see lane_of. Whole: all these rows
  /// exist; otherwise rows from `count` on are 0.
  template <int Rows, bool Whole>
  ATTUNE_LANE static void keys(typename W::shared sm, int to, int warp, of<unsigned char const*> const& from,
                               operand const& rows, int first, [[maybe_unused]] int count) {
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_UNROLL
      for (int x = 0; x < Rows / each; ++x) {
        of<unsigned char const*> source;
        of<bool> inside;
        W::for_lanes([&](int l) {
          int const r = (l + w * 32) / chunks;
          bool in = l % chunks < rows.chunks;
          if constexpr (!Whole) in = in && first + r + x * each < count;
          W::at(inside, l) = in;
          W::at(source, l) = W::at(from, l) + (Whole || in ? (first + r) * rows.position + x * rows.hop : 0);
        });
        W::copy16(sm, copied(to, w, x), source, inside);
      }
    });
  }
  /// Changes the sign of the numbers of 16 MI rows in shared memory: of row n where negative(n).
  template <class Negative>
  ATTUNE_LANE static void negate(typename W::shared sm, int from, Negative const& negative) {
    ATTUNE_ROLLED
    for (int x = 0; x < 16 * C::mi * chunks / 32; ++x) {
      of<std::uint32_t> at, word[4];
      W::for_lanes([&](int l) {
        int const n = l + 32 * x;
        W::at(at, l) = swizzled<C::width>(n / chunks, n % chunks) + std::uint32_t(from);
      });
      W::read16(word, sm, at);
      W::for_lanes([&](int l) {
        std::uint32_t const sign = negative((l + 32 * x) / chunks) ? 0x80008000u : 0u;
        ATTUNE_UNROLL
        for (int k = 0; k < 4; ++k) W::at(word[k], l) ^= sign;
      });
      W::write16(sm, at, word);
    }
  }
  /// The rows of a tile of rows.
  ATTUNE_LANE static void queries(typename W::shared sm, int to, int warp, operand const& from, index_t b, int group,
                                  int pack, int first, int count) {
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_ROLLED
      for (int x = 0; x < C::rows * chunks / C::threads; ++x) {
        of<std::uint32_t> at;
        of<unsigned char const*> source;
        of<bool> inside;
        W::for_lanes([&](int l) {
          int const n = l + w * 32 + x * C::threads, r = n / chunks, chunk = n % chunks;
          bool const in = first + r < count && chunk < from.chunks;
          group_row const row(in ? first + r : 0, group, pack);
          W::at(at, l) = swizzled<C::width>(r, chunk) + std::uint32_t(to);
          W::at(inside, l) = in;
          W::at(source, l) = from.rows(b, row.head) + row.query * from.position + (in ? chunk * 16 : 0);
        });
        W::copy16(sm, at, source, inside);
      }
    });
  }
  /// Factors of keys and values: chunk n of the tile begins at source(n).
  template <int Chunks, class Source>
  ATTUNE_LANE static void factors(typename W::shared sm, int to, int warp, Source const& source) {
    W::all_warps(warp, C::warps, [&](int w) {
      if (32 * w >= Chunks) return;
      of<std::uint32_t> at;
      of<unsigned char const*> from;
      of<bool> inside;
      W::for_lanes([&](int l) {
        int const n = l + 32 * w;
        W::at(at, l) = std::uint32_t(to + 16 * n);
        W::at(inside, l) = n < Chunks;
        W::at(from, l) = reinterpret_cast<unsigned char const*>(source(n < Chunks ? n : 0));
      });
      W::copy16(sm, at, from, inside);
    });
  }
  /// Makes infinities and NaN among the numbers of E that this lane copied by `keys` 0.
  template <class E, int Rows>
  ATTUNE_LANE static void drop_infinite(typename W::shared sm, int from, int warp) {
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_ROLLED
      for (int x = 0; x < Rows * chunks / C::threads; ++x) {
        of<std::uint32_t> const at = copied(from, w, x);
        of<std::uint32_t> word[4];
        W::read16(word, sm, at);
        W::for_lanes([&](int l) {
          ATTUNE_UNROLL
          for (int k = 0; k < 4; ++k) {
            std::uint32_t& pair = W::at(word[k], l);
            if (!is_finite<E>(pair & 0xffffu)) pair &= 0xffff0000u;
            if (!is_finite<E>(pair >> 16)) pair &= 0xffffu;
          }
        });
        W::write16(sm, at, word);
      }
    });
  }
  /// Whether a number of 16 bits is neither an infinity nor a NaN.
  template <class E>
  ATTUNE_LANE static bool is_finite(std::uint32_t bits) {
    constexpr std::uint32_t exponent = std::is_same_v<E, bfloat16> ? 0x7f80u : 0x7c00u;
    return (bits & exponent) != exponent;
  }
  /// Whether what this lane copied by `keys` holds an infinity or a NaN.
  template <class E, int Rows>
  ATTUNE_LANE static of<bool> any_infinite(typename W::shared sm, int from, int warp) {
    constexpr std::uint32_t exponent = std::is_same_v<E, bfloat16> ? 0x7f807f80u : 0x7c007c00u,
                            one = std::is_same_v<E, bfloat16> ? 0x00800080u : 0x04000400u;
    of<bool> found = W::each_lane([](int) { return false; });
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_UNROLL
      for (int x = 0; x < Rows * chunks / C::threads; ++x) {
        of<std::uint32_t> word[4];
        W::read16(word, sm, copied(from, w, x));
        W::for_lanes([&](int l) {
          std::uint32_t carry = 0;
          for (int k = 0; k < 4; ++k)
            carry |= (W::at(word[k], l) & exponent) + one;  // only an exponent of ones carries
          W::at(found, l) = W::at(found, l) || (carry & 0x80008000u) != 0;
        });
      }
    });
    return found;
  }
};

}  // namespace attune::exec_cuda
