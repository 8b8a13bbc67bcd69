// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   parallel(threads, tasks, make_worker):  every task once, by whichever worker is free
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <attune/core/tensor.hpp>

namespace attune::exec_cpu {

/// Runs tasks 0..count-1 in ascending order of start. Each thread calls make_worker() once (its scratch) and the worker for
/// every task it takes; tasks must not depend on who runs them. The first exception is rethrown when all threads are done.
template <class MakeWorker>
void parallel(int threads, index_t count, MakeWorker const& make_worker) {
  if (threads <= 0) threads = int(std::thread::hardware_concurrency());
  if (threads > count) threads = int(count);
  std::atomic<index_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_guard;
  auto const run = [&] {
    try {
      auto worker = make_worker();
      for (index_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < count;) worker(task);
    } catch (...) {
      next.store(count);
      std::lock_guard const lock(failure_guard);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attune::exec_cpu
