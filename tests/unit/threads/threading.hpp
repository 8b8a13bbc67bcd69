// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the tests of threading share: a wait that ends, an executor as a user writes one, and the bits of a call.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <attune/threads/executor.hpp>

namespace attune::test {

/// Waits until `ready()`, a minute at most: a broken executor fails instead of hanging.
template <class Ready>
bool await(Ready const& ready) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A user's executor: threads of its own for each call. It has a state, so that cpu refers to it.
struct counted_threads {
  std::atomic<int> calls = 0, workers = 0;
  int concurrency() const { return 2; }
  void run(int n, worker_body body) {
    ++calls;
    workers += n;
    std::vector<std::jthread> others;
    for (int w = 1; w < n; ++w) others.emplace_back(body, w);
    body(0);
  }
};

/// Outputs and gradients of a call with a gate and a ground, computed on these threads. Defined in threading_test.cpp:
/// one instance of the operator serves every executor.
std::vector<double> bits_of(thread_executor_ref executor, int threads);

}  // namespace attune::test
