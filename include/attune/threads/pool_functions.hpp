// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   use_pool(&theirs)  theirs: own_pool() of another library in the process; this library's calls then run on its
//                            threads
//
// Each shared library that hides its symbols has its own pool of attune threads. Two pools that work at once use twice
// as many threads as there are processors. So one library can share its pool with the others. The interface is two C
// functions, which work across compilers, flags and versions of attune.
#pragma once

#include <atomic>

#include <attune/core/error.hpp>

namespace attune {

/// A thread pool, for libraries that share nothing but pointers. Does not change between versions of attune.
struct pool_functions {
  int version = 1;  ///< of this interface: 1
  /// How many workers may run at once; 1 inside a task of the pool.
  int (*concurrency)() = nullptr;
  /// Calls body(of, w) once for every w in [0, workers), and returns when all have returned. `body` does not throw.
  void (*run)(int workers, void (*body)(void const* of, int worker), void const* of) = nullptr;
};

namespace detail {
inline constinit std::atomic<pool_functions const*> lent_pool = nullptr;
}

/// Makes later calls of this library on `cpu{}` and `cpu{n}` run on that pool. use_pool(nullptr) restores its own pool.
/// Results are bitwise the same.
/// pool: own_pool() of another library, passed as a pointer. The pool and its library must outlive the calls.
/// Threads: call it at any time. Calls that are already running finish where they started.
/// Errors: throws attune::error if the version is not 1, or if a function is missing.
inline void use_pool(pool_functions const* pool) {
  if (pool && pool->version != 1)
    throw error("use_pool", "pool->version", detail::text("the value ", pool->version), "1");
  if (pool && !(pool->concurrency && pool->run))
    throw error("use_pool", "pool", "a function that is missing", "two functions");
  detail::lent_pool.store(pool, std::memory_order_release);
}

}  // namespace attune
