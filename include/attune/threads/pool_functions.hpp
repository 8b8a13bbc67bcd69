// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   use_pool(&theirs)  theirs: own_pool() of another library of the process; this library's calls then run on its
//                            threads
//
// Every shared library that hides its symbols has a pool of attune's threads of its own, and two pools that work at
// once want twice as many threads as there are processors. One library can hand its pool to the others: two functions
// of C, which libraries of different compilers, flags and versions of attune understand.
#pragma once

#include <atomic>

#include <attune/core/error.hpp>

namespace attune {

/// A pool of threads, for libraries that share nothing but pointers. Does not change between versions of attune.
struct pool_functions {
  int version = 1;
  /// How many workers may run at once; 1 inside a task of the pool.
  int (*concurrency)() = nullptr;
  /// Calls body(of, w) once for every w in [0, workers), and returns when all have returned. `body` does not throw.
  void (*run)(int workers, void (*body)(void const* of, int worker), void const* of) = nullptr;
};

namespace detail {
inline constinit std::atomic<pool_functions const*> lent_pool = nullptr;
}

/// From now on the calls of this library on `cpu{}` and `cpu{n}` run on that pool; on its own again after
/// use_pool(nullptr). Results have the same bits.
/// pool: own_pool() of another library, passed on as a pointer. It, and the library that it came from, must outlive the
/// calls.
/// Threads: may be called at any time; calls that have begun end where they began.
/// Errors: throws attune::error on a version that is not 1, and on functions that are missing.
inline void use_pool(pool_functions const* pool) {
  if (pool && pool->version != 1)
    throw error("use_pool", "pool->version", detail::text("the value ", pool->version), "1");
  if (pool && !(pool->concurrency && pool->run))
    throw error("use_pool", "pool", "a function that is missing", "two functions");
  detail::lent_pool.store(pool, std::memory_order_release);
}

}  // namespace attune
