// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

/// Every macro of attune lives here. None of them changes what a policy computes.

// What attune cannot be compiled with says so here, in words, before anything else does.
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
  1  ///< infinity and NaN are looked for by their bits, and infinity is hidden from the compiler
#else
#define ATTUNE_FINITE_MATH_ 0
#endif

/// A function that the next minor version removes; the text says what to call instead.
#ifdef ATTUNE_ALLOW_OLD_NAMES
#define ATTUNE_DEPRECATED(text)
#else
#define ATTUNE_DEPRECATED(text) [[deprecated(text)]]
#endif

/// Host-device functions: policies and scalar-generic code compile unchanged for CUDA.
#if defined(__CUDACC__)
#define ATTUNE_HD __host__ __device__
#define ATTUNE_HD_UNCHECKED _Pragma("nv_exec_check_disable") __host__ __device__
/// Stands before `template`: what the function is instantiated with may be known to the host alone.
#define ATTUNE_UNCHECKED _Pragma("nv_exec_check_disable")
#else
#define ATTUNE_HD
#define ATTUNE_HD_UNCHECKED
#define ATTUNE_UNCHECKED
#endif

/// Inlining by contract: pointwise code must melt into the loop that calls it, and a hot loop must not melt
/// into its caller (register allocation would then depend on the policies around it; docs/lab/performance.md).
#define ATTUNE_INLINE inline __attribute__((always_inline))
#define ATTUNE_NOINLINE __attribute__((noinline))
#define ATTUNE_RESTRICT __restrict__

/// A program over tasks: compiled once on the host, whichever systems run it; on a device it melts into the kernel.
#if defined(__CUDACC__)
#define ATTUNE_PROGRAM
#else
#define ATTUNE_PROGRAM ATTUNE_NOINLINE
#endif

/// Before a loop over the accumulators of a task: on a device they are registers only where their numbers are known to
/// the compiler.
#if defined(__CUDA_ARCH__)
#define ATTUNE_UNROLL _Pragma("unroll")
#else
#define ATTUNE_UNROLL
#endif

/// A function that a device calls in the place of melting it into every kernel that might want it: rarely wanted, long
/// when it is.
#if defined(__CUDACC__)
#define ATTUNE_DEVICE_CALL __noinline__
#else
#define ATTUNE_DEVICE_CALL
#endif

/// On a device: keeps what follows from the index x in this place; the compiler would compute dozens of addresses ahead
/// of a loop and run out of registers.
#if defined(__CUDA_ARCH__)
#define ATTUNE_KEEP_HERE(x) asm volatile("" : "+l"(x))
#else
#define ATTUNE_KEEP_HERE(x) static_cast<void>(x)
#endif

/// Asks for a line of memory, to be in the second-level cache when it is read. g++ does not count that as an effect and
/// leaves out calls of functions that do nothing else; the empty statement is one.
#define ATTUNE_PREFETCH(address) (__builtin_prefetch(address, 0, 2), [] { asm volatile(""); }())
