// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   place.keep_off(caller, waker)  ...  place.anywhere()        where a thread wakes, and where it may run
//
// Linux wakes a thread on its waker's processor if no other processor counts as idle. On virtual machines a sleeping
// processor does not count. The woken thread then waits for milliseconds while the other processor does nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace attune::detail {

/// The processor that this thread runs on; -1 if unknown.
inline int this_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// The number of processors for a thread that starts now. It is the machine's number, or less if an affinity mask
/// (taskset, cpuset) restricts both the calling thread and the process's first thread: then the larger of their
/// numbers. Time quotas (cgroup cpu.max) are not seen.
inline int allowed_processors() {
  int const all = (std::max)(1, int(std::thread::hardware_concurrency()));
#if defined(__linux__)
  int most = 0;
  for (pid_t const thread : std::initializer_list<pid_t>{0, getpid()}) {
    cpu_set_t set;
    if (sched_getaffinity(thread, sizeof set, &set) == 0) most = (std::max)(most, CPU_COUNT(&set));
  }
  if (most > 0) return (std::min)(all, most);
#endif
  return all;
}

/// Controls where a sleeping thread wakes. Does nothing on systems other than Linux, with more than 1024 processors, or
/// for a thread that may run on no processor except those named.
class thread_placement {
 public:
#if defined(__linux__)
  /// The placement of the calling thread.
  thread_placement() : thread_(pid_t(syscall(SYS_gettid))) { look(); }
  /// Keeps the thread off these processors (-1: none) until `anywhere`. Any thread may call it, one at a time.
  void keep_off(int first, int second) {
    if (restricted_ || !look()) return;
    cpu_set_t wanted = own_;
    for (int processor : {first, second})
      if (processor >= 0 && processor < CPU_SETSIZE) CPU_CLR(std::size_t(processor), &wanted);
    if (CPU_COUNT(&wanted) == 0 || CPU_EQUAL(&wanted, &own_)) return;
    restricted_ = sched_setaffinity(thread_, sizeof wanted, &wanted) == 0;
  }
  /// Restores the processors that were allowed before. Only the thread itself calls it.
  void anywhere() {
    if (restricted_) sched_setaffinity(thread_, sizeof own_, &own_);
    restricted_ = false;
  }
  /// The number of processors that the thread was allowed when last checked: at its start, or in keep_off.
  int processors() const { return CPU_COUNT(&own_); }

 private:
  bool look() { return sched_getaffinity(thread_, sizeof own_, &own_) == 0; }

  pid_t thread_;
  bool restricted_ = false;
  cpu_set_t own_{};
#else
  void keep_off(int, int) {}
  void anywhere() {}
  int processors() const { return allowed_processors(); }
#endif
};

}  // namespace attune::detail
