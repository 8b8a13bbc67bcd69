// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   each(threads, count, f):  f(0) ... f(count - 1), on that many threads
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace apps {

/// Rethrows the first exception of any f once all threads are done.
template <class F>
void each(int threads, std::ptrdiff_t count, F const& f) {
  std::atomic<std::ptrdiff_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  auto const work = [&] {
    try {
      for (std::ptrdiff_t n; (n = next++) < count;) f(n);
    } catch (...) {
      next = count;
      std::lock_guard const lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads && t < count; ++t) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace apps
