// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The warp vocabulary on a CUDA device: a thread is one lane of a real warp. sm_80 and later.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/core/storage.hpp>

namespace attune::exec_cuda {

/// One lane of a real warp. `of<T>` is a number that each lane has: on a device, the lane's own T.
struct device_warp {
  template <class T>
  using of = T;
  using shared = std::uint32_t;  ///< an address in shared memory, in bytes

#define ATTUNE_DEVICE static __device__ __forceinline__
  /// Calls f(lane).
  template <class F>
  ATTUNE_DEVICE void for_lanes(F const& f) {
    f(int(threadIdx.x & 31));
  }
  /// f(lane) of each lane.
  template <class F>
  ATTUNE_DEVICE auto each_lane(F const& f) -> decltype(f(0)) {
    return f(int(threadIdx.x & 31));
  }
  /// The number of a lane: on a device, a lane sees its own alone.
  template <class T>
  ATTUNE_DEVICE T& at(T& x, int) {
    return x;
  }
  template <class T>
  ATTUNE_DEVICE T shfl_xor(T x, int mask) {
    return __shfl_xor_sync(~0u, x, mask);
  }
  template <class T>
  ATTUNE_DEVICE T shfl(T x, int from) {
    return __shfl_sync(~0u, x, from);
  }
  ATTUNE_DEVICE bool any(bool x) { return __any_sync(~0u, x); }
  /// Two numbers as two of E, the first in the low half; to nearest.
  template <class E>
  ATTUNE_DEVICE std::uint32_t pack(float low, float high) {
    std::uint32_t r;
    if constexpr (std::is_same_v<E, bfloat16>)
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  /// Two numbers of E as floats.
  template <class E>
  ATTUNE_DEVICE void unpack(std::uint32_t pair, float& low, float& high) {
    if constexpr (std::is_same_v<E, bfloat16>) {
      low = __uint_as_float(pair << 16);
      high = __uint_as_float(pair & 0xffff0000u);
    } else {
      asm("{ .reg .b16 x, y; mov.b32 {x, y}, %2; cvt.f32.f16 %0, x; cvt.f32.f16 %1, y; }"
          : "=f"(low), "=f"(high)
          : "r"(pair));
    }
  }
  /// Four 8 x 8 matrices of 16-bit numbers: lane 8 m + r has the address of row r of matrix m.
  ATTUNE_DEVICE void ldmatrix4(std::uint32_t (&r)[4], shared base, std::uint32_t at, bool transposed) {
    std::uint32_t const p = base + at;
    if (transposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(p)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(p)
                   : "memory");
  }
  /// d += a b for a 16 x 16 and b 16 x 8 of E, d in float.
  template <class E>
  ATTUNE_DEVICE void mma(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    if constexpr (std::is_same_v<E, bfloat16>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  /// d = a b.
  template <class E>
  ATTUNE_DEVICE void mma_first(float (&d)[4], std::uint32_t const (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    if constexpr (std::is_same_v<E, bfloat16>)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%10,%10,%10,%10};"
          : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
          : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
  }
  /// Copies 16 bytes to shared memory in the open group; zeros, and no read, where not `inside`.
  ATTUNE_DEVICE void copy16(shared base, std::uint32_t to, unsigned char const* from, bool inside) {
    int const bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(base + to), "l"(from), "r"(bytes) : "memory");
  }
  /// Closes the group of copies.
  ATTUNE_DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  /// Waits until at most N groups of this lane are under way.
  template <int N>
  ATTUNE_DEVICE void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
  }
  /// Waits for all warps of the block.
  ATTUNE_DEVICE void sync() { __syncthreads(); }
  /// The same; true if x is true in any lane of the block.
  ATTUNE_DEVICE bool sync_or(bool x) { return __syncthreads_or(x) != 0; }
  /// Reads 16 or 4 bytes of shared memory.
  ATTUNE_DEVICE void read16(std::uint32_t (&r)[4], shared base, std::uint32_t at) {
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(base + at)
                 : "memory");
  }
  /// Writes 16 bytes of shared memory.
  ATTUNE_DEVICE void write16(shared base, std::uint32_t at, std::uint32_t const (&r)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(base + at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
  ATTUNE_DEVICE std::uint32_t read4(shared base, std::uint32_t at) {
    std::uint32_t r;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(base + at) : "memory");
    return r;
  }
  /// The number of the warp in its block, from the thread's own register.
  ATTUNE_DEVICE int once_more(int) {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread >> 5;
  }
  /// Runs f(w) for the copies that the warps of the block share: on a device each warp runs its own.
  template <class F>
  ATTUNE_DEVICE void all_warps(int warp, int, F const& f) {
    f(warp);
  }
#undef ATTUNE_DEVICE
};

}  // namespace attune::exec_cuda
