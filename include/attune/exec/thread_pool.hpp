// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{}  =  cpu<>{thread_pool{}}:  threads that wait between calls, so that a call costs microseconds and not the start of threads
//
// One pool per process. A call puts itself on a list and begins to work; helpers that wake in time take its other workers; what
// no helper has taken when the caller is done, the caller takes back. So nobody ever waits for a thread that has not begun, be it
// because it wakes slowly, serves another call or could not be started.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <attune/exec/threading.hpp>

namespace attune {

namespace detail {

/// The state behind thread_pool.
class pool_state {
 public:
  /// Never destroyed, so that destructors of the user's static objects may still call: by then the threads have been joined
  /// and calls run serially.
  static pool_state& instance() {
    static pool_state& pool = *new pool_state;
    static closes_at_exit const closes{pool};
    return pool;
  }
  static int hardware() {
    static int const threads = std::max(1, int(std::thread::hardware_concurrency()));
    return threads;
  }

  void run(int workers, worker_body const& body) {
    job mine{body, 1, 1, 0, nullptr, {}};
    std::unique_lock lock(guard_);
    ++callers_;
    mine.end += hire(workers);
    bool const shared = mine.end > 1;
    if (shared) append(mine);
    lock.unlock();
    if (shared) wake_.notify_one();
    {
      worker_scope const scope;
      body(0);
      lock.lock();
      if (mine.next < mine.end) withdraw(mine);
      if (int w = mine.end; w < workers) {
        lock.unlock();
        for (; w < workers; ++w) body(w);
        lock.lock();
      }
    }
    mine.done.wait(lock, [&] { return mine.running == 0; });
    --callers_;
  }

 private:
  struct job {
    worker_body const& body;
    int next, end;  ///< workers that wait for a helper: [next, end)
    int running;    ///< workers that helpers run
    job* behind;
    std::condition_variable done;
  };
  struct closes_at_exit {
    pool_state& pool;
    ~closes_at_exit() { pool.close(); }
  };

  /// How many helpers a call gets, started where they are missing. Calls at the same time share the processors, so that callers
  /// and helpers together are no more than there are; a call that asks for more threads than processors gets them if it is alone.
  int hire(int workers) {
    if (closed_) return 0;
    int const free = std::max(workers, hardware()) - callers_ - hired_;
    int const wanted = std::max(0, std::min(workers - 1, free));
    try {
      while (int(helpers_.size()) < hired_ + wanted) helpers_.emplace_back([this] { help(); });
    } catch (...) {  // no thread or memory to be had: the caller does what they would have done
    }
    int const got = std::min(wanted, int(helpers_.size()) - hired_);
    hired_ += got;
    return got;
  }
  void append(job& j) {
    job** last = &waiting_;
    while (*last) last = &(*last)->behind;
    *last = &j;
  }
  void remove(job& j) {
    job** at = &waiting_;
    while (*at != &j) at = &(*at)->behind;
    *at = j.behind;
  }
  /// Takes back the workers that no helper has begun.
  void withdraw(job& j) {
    hired_ -= j.end - j.next;
    j.end = j.next;
    remove(j);
  }

  void help() {
    worker_scope const scope;  // for good
    std::unique_lock lock(guard_);
    for (;;) {
      wake_.wait(lock, [&] { return closed_ || waiting_; });
      if (closed_) return;
      job& j = *waiting_;
      int const worker = j.next++;
      if (j.next == j.end) remove(j);
      ++j.running;
      bool const more = waiting_ != nullptr;
      lock.unlock();
      if (more) {  // each helper wakes two more: all are awake after log2 steps, and the caller has paid for one
        wake_.notify_one();
        wake_.notify_one();
      }
      j.body(worker);
      lock.lock();
      --hired_;
      if (--j.running == 0) j.done.notify_one();  // under the lock: without it the caller might return, and the job be gone
    }
  }

  void close() {
    std::vector<std::thread> leaving;
    {
      std::lock_guard const lock(guard_);
      closed_ = true;
      leaving.swap(helpers_);
    }
    wake_.notify_all();
    for (std::thread& t : leaving) {
      if (t.get_id() == std::this_thread::get_id())  // a task has called exit
        t.detach();
      else
        t.join();
    }
  }

  std::mutex guard_;  ///< of everything below
  std::condition_variable wake_;
  std::vector<std::thread> helpers_;
  job* waiting_ = nullptr;  ///< calls with workers for helpers, first come first served
  int callers_ = 0;         ///< threads inside run()
  int hired_ = 0;           ///< workers of helpers, running or waiting for one
  bool closed_ = false;
};

}  // namespace detail

/// attune's threads: started by the first call that wants them, as many as the largest call has wanted, asleep between calls,
/// joined at exit. The calling thread is one of the workers. Calls from several threads at once share the processors: they run side
/// by side, later ones with the helpers that are left, or none. A call from inside a task runs serially, as does one while
/// static objects are destroyed. A child process made by fork must not return from main or call exit (exec and _exit are fine).
struct thread_pool {
  int concurrency() const { return detail::inside_worker ? 1 : detail::pool_state::hardware(); }
  void run(int workers, worker_body const& body) const {
    if (workers <= 1 || detail::inside_worker)
      serial{}.run(workers, body);
    else
      detail::pool_state::instance().run(workers, body);
  }
};

}  // namespace attune
