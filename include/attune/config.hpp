// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

/// All macros of attune. None of them changes what a policy computes.

// A compiler that attune does not support is reported here first, with a readable message.
#if !defined(__GNUC__)  // clang defines it too
#error \
    "attune: needs g++ (12 or later) or clang (14 or later): vector types and inlining by contract are theirs. See docs/reference/portability.md."
#endif
#if !defined(__cpp_exceptions) && !defined(__CUDA_ARCH__)
#error "attune: reports wrong arguments by exceptions. Compile without -fno-exceptions."
#endif
#if (defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)) && !defined(__CUDA_ARCH__)
#if !defined(ATTUNE_ALLOW_FAST_MATH)
#error \
    "attune: -ffast-math, -Ofast and -ffinite-math-only let the compiler assume that there is neither NaN nor infinity, and attune needs both: masked keys would leak. Compile these sources without (-fno-math-errno and -fno-trapping-math do no harm), or define ATTUNE_ALLOW_FAST_MATH and read docs/reference/portability.md first."
#elif defined(__clang__) && __clang_major__ >= 17
#error \
    "attune: clang 17 and later take every number that a function returns for finite, and ATTUNE_ALLOW_FAST_MATH cannot undo that. Add -fno-finite-math-only to -ffast-math."
#endif
#define ATTUNE_FINITE_MATH_ \
  1  ///< infinity and NaN are detected by their bits, and infinity is hidden from the compiler
#else
#define ATTUNE_FINITE_MATH_ 0
#endif

/// Host-device functions: policies and scalar-generic code compile unchanged for CUDA.
#if defined(__CUDACC__)
#define ATTUNE_HD __host__ __device__
#define ATTUNE_HD_UNCHECKED _Pragma("nv_exec_check_disable") __host__ __device__
/// Goes before `template`: the types that the function is instantiated with may be known on the host only.
#define ATTUNE_UNCHECKED _Pragma("nv_exec_check_disable")
#else
#define ATTUNE_HD
#define ATTUNE_HD_UNCHECKED
#define ATTUNE_UNCHECKED
#endif

/// Guaranteed inlining. Pointwise code must be inlined into the loop that calls it. A hot loop must not be inlined into
/// its caller: register allocation would then depend on the policies around it (docs/lab/performance.md).
#define ATTUNE_INLINE inline __attribute__((always_inline))
#define ATTUNE_NOINLINE __attribute__((noinline))
#define ATTUNE_RESTRICT __restrict__
/// A loop that calls pointwise code for every pair. Everything it calls is inlined, at every level of optimization: the
/// policies of users, too. It is not inlined itself.
#define ATTUNE_POINTWISE __attribute__((noinline, flatten))
/// Goes before a loop over directions, contractions or parameters, which are few. Otherwise `g++ -O2` leaves it a loop,
/// and its numbers in memory.
#if defined(__CUDACC__)
#define ATTUNE_UNROLL_FEW
#else
#define ATTUNE_UNROLL_FEW _Pragma("GCC unroll 16")
#endif

/// Around functions that call intrinsics. With g++ 12, intrinsics of AVX-512 warn of uninitialized variables wherever
/// they are inlined (GCC bug 105593), unless a function between is exempt.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#define ATTUNE_INTRINSICS_BEGIN                                                        \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
      _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
/// The end of ATTUNE_INTRINSICS_BEGIN.
#define ATTUNE_INTRINSICS_END _Pragma("GCC diagnostic pop")
#else
#define ATTUNE_INTRINSICS_BEGIN
#define ATTUNE_INTRINSICS_END
#endif

/// 1 where AddressSanitizer checks this source, otherwise 0.
#if defined(__SANITIZE_ADDRESS__)
#define ATTUNE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTUNE_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(ATTUNE_ADDRESS_SANITIZER)
#define ATTUNE_ADDRESS_SANITIZER 0
#endif

/// A program over tasks. On the host it is compiled once, whichever systems run it, by nvcc's host compiler too; on a
/// device it is inlined into the kernel.
#if defined(__CUDA_ARCH__)
#define ATTUNE_PROGRAM
#else
#define ATTUNE_PROGRAM ATTUNE_NOINLINE
#endif

// No class that a device reads has [[no_unique_address]] members. In the arguments of a kernel nvcc 13 lays them out in
// another way than on the host, without a word: 1432 bytes for an operator's 1008 (seen).
// tests/cmake/CheckLayers.cmake looks for them, and core/device_program.hpp compares the sizes at run time.

/// Goes before a loop over the accumulators of a task. On a device, accumulators are in registers only if the compiler
/// knows their indices.
#if defined(__CUDA_ARCH__)
#define ATTUNE_UNROLL _Pragma("unroll")
#else
#define ATTUNE_UNROLL
#endif

/// A function that a device calls instead of inlining it into every kernel: it is long and rarely needed.
#if defined(__CUDACC__)
#define ATTUNE_DEVICE_CALL __noinline__
#else
#define ATTUNE_DEVICE_CALL
#endif

/// On a device: computes what depends on the index x at this place. Otherwise the compiler computes dozens of addresses
/// ahead of a loop and runs out of registers.
#if defined(__CUDA_ARCH__)
#define ATTUNE_KEEP_HERE(x) asm volatile("" : "+l"(x))
#else
#define ATTUNE_KEEP_HERE(x) static_cast<void>(x)
#endif

/// Prefetches a cache line into the second-level cache. g++ does not count a prefetch as an effect and drops calls of
/// functions that do nothing else; the empty asm statement counts as one.
#define ATTUNE_PREFETCH(address) (__builtin_prefetch(address, 0, 2), [] { asm volatile(""); }())
