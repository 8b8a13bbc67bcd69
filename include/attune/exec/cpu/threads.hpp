// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   parallel(cpu, tasks, make_worker):  runs every task once, on whichever worker is free
#pragma once

#include <atomic>
#include <cfenv>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <attune/core/tensor.hpp>
#include <attune/exec/cpu/executor.hpp>
#include <attune/threads/executor.hpp>

namespace attune::exec_cpu {

/// Runs a task with the rounding mode and the subnormal mode of the calling thread, whichever thread runs the task.
/// Threads that outlive a call do not know the modes that the caller has set since. Without this, bits would depend on
/// the number of threads.
class floating_point_mode {
 public:
  floating_point_mode() { std::fegetenv(&mode_); }
  template <class F>
  void run(F const& f) const {
    if (std::this_thread::get_id() == caller_) return f();
    std::fenv_t own;
    std::fegetenv(&own);
    std::fesetenv(&mode_);
    f();
    std::fesetenv(&own);
  }

 private:
  std::fenv_t mode_;
  std::thread::id caller_ = std::this_thread::get_id();
};

/// Runs tasks, one after the other, with its own memory.
struct task_runner {
  task_runner() = default;
  task_runner(task_runner const&) = delete;
  task_runner& operator=(task_runner const&) = delete;
  virtual ~task_runner() = default;
  virtual void run(index_t task) = 0;
};

/// parallel() with the type of its workers erased: compiled once.
inline void run_tasks(thread_executor_ref executor, int threads, index_t count,
                      std::function<std::unique_ptr<task_runner>()> const& make_runner) {
  std::atomic<index_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_guard;
  auto const work = [&]() noexcept {
    index_t task = next.fetch_add(1, std::memory_order_relaxed);
    if (task >= count) return;
    try {
      auto const runner = make_runner();
      for (; task < count; task = next.fetch_add(1, std::memory_order_relaxed)) runner->run(task);
    } catch (...) {
      next.store(count);
      std::lock_guard const lock(failure_guard);
      if (!failure) failure = std::current_exception();
    }
  };
  if (count > 1 && !attune::detail::inside_worker) {
    if (threads <= 0) threads = executor.concurrency();
    if (threads > count) threads = int(count);
    if (threads > 1) {
      floating_point_mode const mode;
      executor.run(threads, [&](int) noexcept {
        attune::detail::worker_scope const scope;
        mode.run(work);
      });
    }
  }
  work();  // all tasks of a serial call, or the tasks of workers that the executor left out
  if (failure) std::rethrow_exception(failure);
}

/// Runs tasks 0..count-1, started in ascending order, on `threads` workers (0: as many as the executor runs at once).
/// Each worker that gets a task calls make_worker() once, for its scratch, and calls the result for every task that it
/// takes. Tasks must not depend on which worker runs them. The first exception is rethrown when all workers are done.
/// From inside a task, everything runs serially.
template <class MakeWorker>
void parallel(thread_executor_ref executor, int threads, index_t count, MakeWorker const& make_worker) {
  struct runner final : task_runner {
    decltype(std::declval<MakeWorker const&>()()) worker;
    explicit runner(MakeWorker const& make) : worker(make()) {}
    void run(index_t task) override { worker(task); }
  };
  run_tasks(executor, threads, count, [&] { return std::make_unique<runner>(make_worker); });
}
template <class MakeWorker>
void parallel(cpu_threads const& exec, index_t count, MakeWorker const& make_worker) {
  parallel(exec.executor, exec.threads, count, make_worker);
}

}  // namespace attune::exec_cpu
