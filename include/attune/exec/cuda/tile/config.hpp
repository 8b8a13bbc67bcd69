// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The extents of a tile and its layout in shared memory.
#pragma once

#include <attune/exec/cuda/call.hpp>

#if defined(__CUDACC__)
#define ATTUNE_LANE __device__ __forceinline__
#else
/// Goes before a function of a tile. nvcc compiles it for the device alone, and inlines it.
#define ATTUNE_LANE inline
#endif

/// Goes before a loop that a device does not unroll: it is rare, or long.
#if defined(__CUDA_ARCH__)
#define ATTUNE_ROLLED _Pragma("unroll 1")
#else
#define ATTUNE_ROLLED
#endif

namespace attune::exec_cuda {

/// visit(r, lane) for rows r < R of every lane.
template <class W, int R, class Visit>
ATTUNE_LANE void each_row(Visit const& visit) {
  ATTUNE_UNROLL
  for (int r = 0; r < R; ++r) W::for_lanes([&](int l) { visit(r, l); });
}
/// visit(i, n, e, lane) for the numbers of M x N blocks, four of a block in every lane: e / 2 is the row.
template <class W, int M, int N, class Visit>
ATTUNE_LANE void each_number(Visit const& visit) {
  ATTUNE_UNROLL
  for (int i = 0; i < M; ++i) {
    ATTUNE_UNROLL
    for (int n = 0; n < N; ++n) {
      ATTUNE_UNROLL
      for (int e = 0; e < 4; ++e) W::for_lanes([&](int l) { visit(i, n, e, l); });
    }
  }
}
/// x of each four lanes that lie together, combined: all of them get the result.
template <class W, class X, class Combine>
ATTUNE_LANE X over_four(X x, Combine const& combine) {
  ATTUNE_UNROLL
  for (int mask = 1; mask < 4; mask *= 2) {
    X const y = W::shfl_xor(x, mask);
    W::for_lanes([&](int l) { W::at(x, l) = combine(W::at(x, l), W::at(y, l)); });
  }
  return x;
}

/// Width: features of rows in shared memory, a multiple of 64. BN keys; MI x 16 rows for each of the warps, or for
/// `Parts` adjacent warps: all of these compute the scores, and each has the sums of a part of the features.
template <int Width, int BN, int MI, int Warps, int Parts = 1>
struct tile_config {
  static_assert(Width % (64 * Parts) == 0 && BN % 16 == 0 && Warps % Parts == 0);
  static constexpr int width = Width, bn = BN, mi = MI, warps = Warps, parts = Parts, rows = 16 * MI * Warps / Parts;
  static constexpr int threads = 32 * Warps;
};

/// The extents that an operator gets for a width.
template <class Op, class E, int Width>
struct chosen_config {
  using is = tile_facts<Op>;
  static constexpr int scores = is::products + (is::range ? 1 : 0) + (Op::contractions::size > is::products ? 1 : 0);
  static constexpr bool lean = is::affine && !is::second && Width <= 128;
  static constexpr int mi = lean ? 2 : 1, warps = lean || Width > 128 ? 4 : 8;
  static constexpr int bn = Width > 128 || scores > 2 || (is::second && Width > 64) ? 32 : 64;
  using type = tile_config<Width, bn, mi, warps>;
};
/// Floats take twice the memory, and registers for what is added to the sums: 16 rows a warp, and as many warps as fit,
/// at least one.
template <class Op, int Width>
struct chosen_config<Op, float, Width> {
  using is = tile_facts<Op>;
  static constexpr int products = is::products, row = 4 * Width;  // bytes of a row
  static constexpr int bn = Width > 128 ? 16 : Width > 64 || products > 2 || is::range || is::second ? 32 : 64;
  static constexpr int most = 160 * 1024;  // an sm_80 has 163 KiB
  static constexpr int warps_for(int w) {
    return w == 1 || row * (16 * w * products + 2 * bn * (products + 1)) <= most ? w : warps_for(w / 2);
  }
  using type = tile_config<Width, bn, 1, warps_for(8)>;
};
/// Where things lie in shared memory, in bytes.
template <class Op, class E, class C>
struct tile_memory {
  static constexpr int products = tile_facts<Op>::products, row = 2 * C::width, planes = tile_format<E>::planes;
  static constexpr int query_plane = C::rows * row, key_plane = C::bn * row;
  static constexpr int query_bytes = planes * query_plane, key_bytes = planes * key_plane;
  ATTUNE_HD static constexpr int query(int k) { return k * query_bytes; }
  ATTUNE_HD static constexpr int key(int k, int slot) { return products * query_bytes + (2 * k + slot) * key_bytes; }
  ATTUNE_HD static constexpr int value(int slot) { return key(products, slot); }
  /// The factors of split keys and values, 4 to a chunk; a warp copies 32 chunks.
  static constexpr int factor_chunks = tile_format<E>::split ? (products + 1) * C::bn / 4 : 0,
                       factor_bytes = (factor_chunks + 31) / 32 * 512;
  static_assert(factor_chunks <= C::threads);
  ATTUNE_HD static constexpr int key_factors(int k, int slot) {
    return value(2) + slot * factor_bytes + k * C::bn * int(sizeof(float));
  }
  ATTUNE_HD static constexpr int value_factors(int slot) { return key_factors(products, slot); }
  static constexpr int bytes = products * query_bytes + (2 * products + 2) * key_bytes + 2 * factor_bytes;
};

/// Bytes of shared memory that a block may have, at least: of sm_80, sm_87 and from sm_90 to sm_110; of sm_86, sm_89,
/// sm_120 and sm_121.
inline constexpr int large_memory = 163 * 1024, small_memory = 99 * 1024;
/// Whether a block of sm_N has small_memory. N10: 10 N, as nvcc lists it.
constexpr bool has_small_memory(int n10) { return n10 == 860 || n10 == 890 || n10 == 1200 || n10 == 1210; }

/// The memory of a block of the forward pass, by its extents.
template <class Op, class E>
struct forward_memory {
  template <class C>
  using of = tile_memory<Op, E, C>;
};
/// C with fewer keys or warps, so that a block takes at most Most bytes of Memory; the smallest tile, if none does.
template <class Memory, class C, int Most>
struct fitted_config {
  static constexpr int bn = C::bn > 32 || (C::warps <= 4 && C::bn > 16) ? C::bn / 2 : C::bn;
  static constexpr int warps = bn == C::bn && C::warps > C::parts ? C::warps / 2 : C::warps;
  static constexpr bool done = Memory::template of<C>::bytes <= Most || (bn == C::bn && warps == C::warps);
  static auto find() {
    if constexpr (done)
      return C{};
    else
      return typename fitted_config<Memory, tile_config<C::width, bn, C::mi, warps, C::parts>, Most>::type{};
  }
  using type = decltype(find());
};
/// The tile of an operator for a width, in at most Memory bytes if that is possible.
template <class Op, class E, int Width, int Memory = large_memory>
using config_of = typename std::conditional_t<
    Memory == large_memory, chosen_config<Op, E, Width>,
    fitted_config<forward_memory<Op, E>, typename chosen_config<Op, E, Width>::type, Memory>>::type;

/// Throws attune::error if tiles take more than the `has` bytes that a block of the device may have. smallest: bytes of
/// the tiles of small_widths.
inline void require_shared_memory(char const* function, int has, int needs, int smallest, int width, int products) {
  using attune::detail::text;
  if (needs <= has) return;
  throw error(function, "a block of the device", text(has, " bytes of shared memory"),
              text(needs, ", for tiles of ", width, " features and ", products, " products: ",
                   smallest <= has ? "compile for this device alone, as with -arch=native, or call "
                                     "cuda<E, exec_cuda::small_widths<64, 128, 256>>"
                                   : "a device with more, fewer features, or thrust_on"));
}
/// The same for a tile of the forward pass.
template <class Op, class E, class C>
void require_shared_memory(int has) {
  using memory = forward_memory<Op, E>;
  using smaller = typename fitted_config<memory, C, small_memory>::type;
  require_shared_memory("forward", has, tile_memory<Op, E, C>::bytes, memory::template of<smaller>::bytes, C::width,
                        tile_facts<Op>::products);
}

/// The address of a chunk of 8 features, so that 8 rows of a column and 8 chunks of a row lie in different banks.
template <int Width>
ATTUNE_HD constexpr std::uint32_t swizzled(int row, int chunk) {
  return std::uint32_t(row * (2 * Width) + ((chunk ^ (row & 7)) * 16));
}

}  // namespace attune::exec_cuda
