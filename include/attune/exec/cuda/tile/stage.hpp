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

  /// Rows [first, first + Rows) of `from`; 0 for rows from `count` on and for chunks from `wide` on.
  template <int Rows>
  ATTUNE_LANE static void keys(typename W::shared sm, int to, int warp, unsigned char const* from, std::int64_t step,
                               int first, int count, int wide) {
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_UNROLL
      for (int x = 0; x < Rows * chunks / C::threads; ++x) {
        of<std::uint32_t> at;
        of<unsigned char const*> source;
        of<bool> inside;
        W::for_lanes([&](int l) {
          int const n = l + w * 32 + x * C::threads, r = n / chunks, chunk = n % chunks;
          bool const in = first + r < count && chunk < wide;
          W::at(at, l) = swizzled<C::width>(r, chunk) + std::uint32_t(to);
          W::at(inside, l) = in;
          W::at(source, l) = in ? from + std::int64_t(first + r) * step + chunk * 16 : from;
        });
        W::copy16(sm, at, source, inside);
      }
    });
  }
  /// The rows of a tile of rows.
  ATTUNE_LANE static void queries(typename W::shared sm, int to, int warp, operand const& from, index_t b, int group,
                                  int pack, int first, int count) {
    W::all_warps(warp, C::warps, [&](int w) {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
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
  /// Whether what this lane copied by `keys` holds an infinity or a NaN.
  template <class E, int Rows>
  ATTUNE_LANE static of<bool> any_infinite(typename W::shared sm, int from, int warp) {
    constexpr std::uint32_t exponent = std::is_same_v<E, bfloat16> ? 0x7f807f80u : 0x7c007c00u,
                            one = std::is_same_v<E, bfloat16> ? 0x00800080u : 0x04000400u;
    of<bool> found;
    W::for_lanes([&](int l) { W::at(found, l) = false; });
    W::all_warps(warp, C::warps, [&](int w) {
      ATTUNE_UNROLL
      for (int x = 0; x < Rows * chunks / C::threads; ++x) {
        of<std::uint32_t> at, word[4];
        W::for_lanes([&](int l) {
          int const n = l + w * 32 + x * C::threads;
          W::at(at, l) = swizzled<C::width>(n / chunks, n % chunks) + std::uint32_t(from);
        });
        W::read16(word, sm, at);
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
