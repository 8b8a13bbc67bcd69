// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   place.keep_off(this_processor())        a thread to be woken shall not wait for the processor of the one that wakes it
//
// Linux puts a thread that wakes on the processor of its waker if no other counts as idle, and on virtual machines one that sleeps
// does not count: the thread then waits for milliseconds, while the other processor does nothing.
#pragma once

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace attune::detail {

/// The processor that this thread runs on; -1: unknown.
inline int this_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Where a thread may run: where it was allowed to when it began, or wherever somebody else has put it since, but for one processor.
/// Does nothing on systems other than Linux, with more than 1024 processors, and for a thread that is allowed a single one.
class thread_placement {
 public:
#if defined(__linux__)
  /// That of the calling thread.
  thread_placement() : thread_(pid_t(syscall(SYS_gettid))) {
    if (sched_getaffinity(thread_, sizeof set_, &set_) != 0) thread_ = 0;
    own_ = set_;
  }
  /// -1: anywhere. From one thread at a time, any thread; a system call where the processor is another than last time.
  void keep_off(int processor) {
    if (thread_ == 0 || processor == off_ || getpid() != process_) return;  // not from a child process made by fork
    cpu_set_t now;
    if (sched_getaffinity(thread_, sizeof now, &now) != 0) return;
    if (!CPU_EQUAL(&now, &set_)) own_ = now;
    set_ = own_;
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_CLR(std::size_t(processor), &set_);
    if (CPU_COUNT(&set_) == 0) set_ = own_;
    if (!CPU_EQUAL(&now, &set_) && sched_setaffinity(thread_, sizeof set_, &set_) != 0) set_ = now;
    off_ = processor;
  }

 private:
  pid_t thread_, process_ = getpid();
  int off_ = -1;
  cpu_set_t own_{}, set_{};  ///< without and with our own restriction
#else
  void keep_off(int) {}
#endif
};

}  // namespace attune::detail
