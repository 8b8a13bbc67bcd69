// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{}  =  cpu<>{thread_pool{}}:  threads that wait between calls: a call costs microseconds instead of the
//                                    start of threads
//
// One pool per process. A call adds itself to a list and starts to work. Helpers that wake in time take its other
// workers. When the caller is done, it takes back the workers that no helper has started. So a call never waits for a
// thread that has not started, whether that thread wakes slowly, serves another call or could not be created.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <attune/threads/executor.hpp>
#include <attune/threads/placement.hpp>
#include <attune/threads/pool_functions.hpp>
#include <attune/threads/spin.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace attune {

namespace detail {

/// Tells a process from its forked children.
inline long this_process() {
#if defined(__unix__) || defined(__APPLE__)
  return long(getpid());
#else
  return 0;
#endif
}

/// The state behind thread_pool.
class pool_state {
 public:
  /// Never destroyed, so that destructors of your static objects may still make calls. By then the threads are joined
  /// and calls run serially.
  static pool_state& instance() {
    static pool_state& pool = *new pool_state;
    static closes_at_exit const closes{pool};
    return pool;
  }
  static int hardware() {
    static int const threads = allowed_processors();
    return threads;
  }

  void run(int workers, worker_body const& body) {
    if (this_process() != process_) {  // after fork(): the child has no pool threads
      worker_scope const scope;
      return serial{}.run(workers, body);
    }
    job mine{body, 1, 1, 0, this_processor(), nullptr, {}};
    std::unique_lock lock(guard_);
    ++callers_;
    mine.end += hire(workers);
    if (mine.end > 1) append(mine);
    helper* const first = called();
    bool const apart = one_each();
    lock.unlock();
    if (first) wake(*first, apart ? mine.processor : -1, -1);
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
    if (mine.running != 0 && one_each()) {
      lock.unlock();
      if (!spin_until([&] { return mine.running == 0 && lock.try_lock(); })) lock.lock();
    }
    mine.done.wait(lock, [&] { return mine.running == 0; });
    --callers_;
  }

 private:
  struct job {
    worker_body const& body;
    int next, end;             ///< workers that wait for a helper: [next, end)
    std::atomic<int> running;  ///< workers that helpers are running
    int processor;             ///< the caller's processor
    job* behind;
    std::condition_variable done;
  };
  struct helper {
    std::thread thread;
    std::optional<thread_placement> place;  ///< set once the thread runs
    std::condition_variable wake;
    bool awake = false;
    helper* behind = nullptr;
  };
  struct closes_at_exit {
    pool_state& pool;
    ~closes_at_exit() { pool.close(); }
  };

  /// The number of helpers that a call gets. Starts helpers that are missing. Concurrent calls share the processors:
  /// callers and helpers together do not exceed the number of processors. A call that requests more threads than there
  /// are processors gets them if it is alone.
  int hire(int workers) {
    if (closed_) return 0;
    int const free = (std::max)(workers, hardware()) - callers_ - hired_;
    int const wanted = (std::max)(0, (std::min)(workers - 1, free));
    try {
      while (int(helpers_.size()) < hired_ + wanted) start();
    } catch (...) {  // no thread or no memory left: the caller does the work itself
    }
    int const got = (std::min)(wanted, int(helpers_.size()) - hired_);
    hired_ += got;
    return got;
  }
  void start() {
    helper& h = helpers_.emplace_back();
    try {
      h.thread = std::thread([this, &h] { help(h); });
    } catch (...) {
      helpers_.pop_back();
      throw;
    }
  }
  /// Whether each working thread can have its own processor.
  bool one_each() const { return callers_ + hired_ <= hardware(); }
  /// A sleeping helper for the calling thread to wake, or null. It is null if no helper sleeps, or if the helpers that
  /// are spinning or being woken are enough. A helper looks for jobs before it sleeps, so no job is missed.
  helper* called() {
    helper* const h = offered_ > watching_ + coming_ ? idle_ : nullptr;
    if (h) {
      idle_ = h->behind;
      ++coming_;
    }
    return h;
  }
  /// Call without the lock: makes three system calls. A helper from `called` belongs to its waker until it is awake.
  void wake(helper& h, int off, int also_off) {
    h.place->keep_off(off, also_off);
    {
      std::lock_guard const lock(guard_);
      h.awake = true;
    }
    h.wake.notify_one();
  }
  void append(job& j) {
    job** last = &waiting_;
    while (*last) last = &(*last)->behind;
    *last = &j;
    offered_ += j.end - j.next;
  }
  void remove(job& j) {
    job** at = &waiting_;
    while (*at != &j) at = &(*at)->behind;
    *at = j.behind;
  }
  /// Takes back the workers that no helper has started.
  void withdraw(job& j) {
    hired_ -= j.end - j.next;
    offered_ -= j.end - j.next;
    j.end = j.next;
    remove(j);
  }

  void help(helper& self) {
    worker_scope const scope;                        // for the life of the thread
    thread_placement& place = self.place.emplace();  // no other thread reads it before this one sleeps
    std::unique_lock lock(guard_);
    for (;;) {
      // Working and spinning threads together never exceed the number of processors.
      if (!closed_ && !waiting_ &&
          (std::max)(callers_, 1) + hired_ + watching_ < (std::min)(hardware(), place.processors()))
        watch(lock);
      while (!closed_ && !waiting_) {
        place.anywhere();
        sleep(self, lock);
      }
      if (closed_) return;
      job& j = *waiting_;
      int const worker = j.next++;
      --offered_;
      if (j.next == j.end) remove(j);
      ++j.running;
      // Each helper wakes two more: all are awake after log2 steps, and the caller wakes only one.
      helper* const more[2]{called(), called()};
      bool const apart = one_each();
      lock.unlock();
      for (helper* h : more)
        if (h) wake(*h, apart ? j.processor : -1, apart ? this_processor() : -1);
      place.anywhere();  // it has woken on the right processor: lift the restriction
      j.body(worker);
      lock.lock();
      --hired_;
      if (--j.running == 0)
        j.done.notify_one();  // under the lock: otherwise the caller might return and destroy the job first
    }
  }
  /// Spins before the thread sleeps: calls often follow each other closely.
  void watch(std::unique_lock<std::mutex>& lock) {
    ++watching_;
    lock.unlock();
    if (!spin_until([&] { return offered_ != 0 && lock.try_lock(); })) lock.lock();
    --watching_;
  }
  void sleep(helper& self, std::unique_lock<std::mutex>& lock) {
    self.awake = false;
    self.behind = idle_;
    idle_ = &self;
    self.wake.wait(lock, [&] { return self.awake; });
    --coming_;
  }

  void close() {
    if (this_process() != process_) return;
    std::unique_lock lock(guard_);
    closed_ = true;
    for (; idle_; idle_ = idle_->behind) {
      ++coming_;
      idle_->awake = true;
      idle_->wake.notify_one();
    }
    lock.unlock();
    for (helper& h : helpers_) {                            // no helper is added any more
      if (h.thread.get_id() == std::this_thread::get_id())  // a task called exit()
        h.thread.detach();
      else
        h.thread.join();
    }
  }

  long const process_ = this_process();
  std::mutex guard_;            ///< protects everything below
  std::deque<helper> helpers_;  ///< never destroyed: a helper may be notified after its thread has ended
  helper* idle_ = nullptr;      ///< sleeping helpers, the last one to fall asleep first
  job* waiting_ = nullptr;      ///< calls with workers left for helpers, first come, first served
  int coming_ = 0;              ///< helpers that are being woken
  int watching_ = 0;            ///< helpers that spin while they look for a call
  int callers_ = 0;             ///< threads inside run()
  int hired_ = 0;               ///< workers assigned to helpers, running or waiting for one
  bool closed_ = false;
  /// Workers of waiting calls that no helper has started. Spinning helpers read it, so it has its own cache line.
  alignas(64) std::atomic<int> offered_ = 0;
};

/// Runs on this library's own threads, even after use_pool.
struct own_threads {
  static int concurrency() { return inside_worker ? 1 : pool_state::hardware(); }
  static void run(int workers, worker_body const& body) {
    if (workers <= 1 || inside_worker)
      serial{}.run(workers, body);
    else
      pool_state::instance().run(workers, body);
  }
};

}  // namespace detail

/// attune's own threads. The first call that needs threads starts them. There are as many as the largest call so far
/// has needed. Between calls they spin for up to 50 microseconds, then sleep. They are joined at exit. The calling
/// thread is one of the workers. Calls from several threads at once share the processors and run side by side. A later
/// call gets the helpers that are left, or none. Calls run serially from inside a task, while static objects are
/// destroyed, and in a child process made by fork. After use_pool, calls run on another library's threads.
struct thread_pool {
  /// Number of processors that this process may use, or what a pool given to use_pool states; 1 inside a task.
  int concurrency() const {
    pool_functions const* const lent = borrowed();
    return lent ? lent->concurrency() : detail::own_threads::concurrency();
  }
  /// Runs all workers, the first one on the calling thread, and returns when all have returned.
  void run(int workers, worker_body const& body) const {
    if (pool_functions const* const lent = borrowed())
      lent->run(workers, [](void const* of, int worker) { (*static_cast<worker_body const*>(of))(worker); }, &body);
    else
      detail::own_threads::run(workers, body);
  }

 private:
  /// Null inside a task: a nested call stays on its thread, because a borrowed pool does not know of the task.
  static pool_functions const* borrowed() {
    return detail::inside_worker ? nullptr : detail::lent_pool.load(std::memory_order_acquire);
  }
};

/// This library's own pool, to pass to use_pool of other libraries. A pointer to it is valid while the library is
/// loaded.
inline pool_functions const& own_pool() {
  static constexpr pool_functions own{1, detail::own_threads::concurrency,
                                      [](int workers, void (*body)(void const*, int), void const* of) {
                                        auto const work = [&](int worker) { body(of, worker); };
                                        detail::own_threads::run(workers, work);
                                      }};
  return own;
}

}  // namespace attune
