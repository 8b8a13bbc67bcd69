// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Products of a warpgroup (wgmma) and barriers of transactions (mbarrier): sm_90a alone. The accumulators of m64n64
// lie in each warp as eight of m16n8: code that reads them is the same for both.
//
// Source: PTX ISA 8.x, "Asynchronous Warpgroup Level Matrix Instructions" and "mbarrier".
#pragma once

#include <attune/exec/cuda/warp/device.cuh>

namespace attune::exec_cuda {

/// One lane of a warp that multiplies together with the three next to it. Tiles in shared memory begin at multiples of
/// 1,024 bytes; a row has 128 bytes, and its chunk c of 16 bytes lies at place c xor (row mod 8).
struct device_warpgroup : device_warp {
#define ATTUNE_DEVICE static __device__ __forceinline__
  /// Describes a tile: 8 rows take 1,024 bytes. A step of 16 columns adds 32 bytes to `at`, one of 16 rows 2,048.
  ATTUNE_DEVICE std::uint64_t tile(shared at) {
    return std::uint64_t((at & 0x3ffffu) >> 4) | std::uint64_t(1) << 16 | std::uint64_t(64) << 32 |
           std::uint64_t(1) << 62;
  }
  /// Before the first product, and after accumulators or fragments have been written.
  ATTUNE_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  /// Writes of this lane to shared memory become visible to products and bulk copies.
  ATTUNE_DEVICE void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  /// Closes the group of products.
  ATTUNE_DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  /// Waits until at most N groups of products are under way.
  template <int N>
  ATTUNE_DEVICE void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
  }

#define ATTUNE_D4(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define ATTUNE_D32 \
  ATTUNE_D4(0), ATTUNE_D4(1), ATTUNE_D4(2), ATTUNE_D4(3), ATTUNE_D4(4), ATTUNE_D4(5), ATTUNE_D4(6), ATTUNE_D4(7)
#define ATTUNE_R32                                                                                                   \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%" \
  "30,"                                                                                                              \
  "%31}"
#define ATTUNE_SS(type)                                                                                  \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type \
               " " ATTUNE_R32 ", %32, %33, p, 1, 1, 0, 0; }"                                             \
               : ATTUNE_D32                                                                              \
               : "l"(a), "l"(b), "r"(int(add)))
#define ATTUNE_RS(type)                                                                                  \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type \
               " " ATTUNE_R32 ", {%32,%33,%34,%35}, %36, p, 1, 1, 1; }"                                  \
               : ATTUNE_D32                                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)))
  /// d = a b^T, or d += a b^T: a 64 x 16 and b 64 x 16 of E in shared memory, d 64 x 64 in float.
  template <class E>
  ATTUNE_DEVICE void product_of_tiles(float (&d)[8][4], std::uint64_t a, std::uint64_t b, bool add) {
    if constexpr (std::is_same_v<E, bfloat16>)
      ATTUNE_SS("bf16.bf16");
    else
      ATTUNE_SS("f16.f16");
  }
  /// d = a b, or d += a b: a 64 x 16 in registers (each warp its 16 rows, as mma has them), b 16 x 64 in shared memory.
  template <class E>
  ATTUNE_DEVICE void product_with_tile(float (&d)[8][4], std::uint32_t const (&a)[4], std::uint64_t b, bool add) {
    if constexpr (std::is_same_v<E, bfloat16>)
      ATTUNE_RS("bf16.bf16");
    else
      ATTUNE_RS("f16.f16");
  }
#undef ATTUNE_RS
#undef ATTUNE_SS
#undef ATTUNE_R32
#undef ATTUNE_D32
#undef ATTUNE_D4

  /// A barrier of 8 bytes in shared memory that opens when `arrivals` have come and all expected bytes are there.
  ATTUNE_DEVICE void make_barrier(shared at, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
  }
  /// Arrives.
  ATTUNE_DEVICE void arrive(shared at) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(at) : "memory");
  }
  /// Arrives, and promises `bytes` of bulk copies.
  ATTUNE_DEVICE void arrive_expecting(shared at, int bytes) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" ::"r"(at), "r"(bytes)
                 : "memory");
  }
  /// Waits for the end of the phase that has this parity.
  ATTUNE_DEVICE void wait_barrier(shared at, int parity) {
    asm volatile(
        "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::
            "r"(at),
        "r"(parity)
        : "memory");
  }
  /// Copies `bytes` (a multiple of 16, both addresses too); the barrier counts them when they are there.
  ATTUNE_DEVICE void copy_bulk(shared to, void const* from, int bytes, shared barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
  }
#undef ATTUNE_DEVICE
};

}  // namespace attune::exec_cuda
