// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

// In a child process the leak sanitizer finds what the parent's other threads hold, and the thread sanitizer waits a
// second at exit.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ATTUNE_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define ATTUNE_TEST_SANITIZED
#endif
#endif

#include <doctest/doctest.h>

#include <attune/exec/cpu/threads.hpp>

#include "threading.hpp"

namespace attune::test {
namespace {

using exec_cpu::parallel;

/// Constructed before the pool, so destroyed after it: calls still work then, serially.
struct calls_at_exit {
  bool wanted = false;
  ~calls_at_exit() {
    if (!wanted) return;
    std::atomic<int> ran = 0;
    auto const here = std::this_thread::get_id();
    bool alone = true;
    parallel(cpu<>{3}, 6, [&] {
      return [&](index_t) {
        ++ran;
        alone = alone && std::this_thread::get_id() == here;
      };
    });
    if (ran != 6 || !alone) {
      std::fputs("a call during exit went wrong\n", stderr);
      std::_Exit(1);
    }
  }
} at_exit;

/// A call in which `threads` workers must be at work at the same time.
bool all_meet(int threads) {
  std::atomic<int> met = 0;
  std::atomic<bool> all = true;
  parallel(cpu<>{threads}, threads, [&] {
    return [&](index_t) {
      ++met;
      if (!await([&] { return met == threads; })) all = false;
    };
  });
  return all;
}

TEST_CASE("thread_pool: a call gets the threads that it names, also more than there are processors") {
  at_exit.wanted = true;
  for (int threads : {2, 5, 3}) {
    CAPTURE(threads);
    CHECK(all_meet(threads));
  }
}

TEST_CASE("thread_pool: threads persist from call to call") {
  std::atomic<int> fresh = 0;
  for (int call = 0; call < 1000; ++call) {
    std::atomic<int> met = 0;
    parallel(cpu<>{2}, 2, [&] {
      return [&](index_t) {
        static thread_local bool known = false;
        if (!known) ++fresh;
        known = true;
        ++met;
        await([&] { return met == 2; });
      };
    });
  }
  CHECK(fresh >= 2);
  CHECK(fresh < 500);  // the caller and the helpers that other tests have made it start; with new ones each time 1001
}

TEST_CASE("thread_pool: a thousand short calls in a row") {
  std::atomic<int> ran = 0;
  for (int call = 0; call < 1000; ++call) parallel(cpu<>{2}, 3, [&] { return [&](index_t) { ++ran; }; });
  CHECK(ran == 3000);
}

TEST_CASE("thread_pool: calls after pauses of any length find the threads that they name") {
  // Helpers watch for the next call, give up and fall asleep: calls that come at any of these moments must not be
  // overlooked.
  int const threads = std::max(2, std::min(4, thread_pool{}.concurrency()));
  bool all = true;
  for (int call = 0; call < 400 && all; ++call) {
    auto const pause = std::chrono::microseconds(call % 100 * 2);  // to four times detail::longest_spin
    for (auto const begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < pause;) {
    }
    all = all_meet(threads);
  }
  CHECK(all);
}

TEST_CASE("thread_pool: a helper that was asleep runs on another processor than its caller") {
  if (thread_pool{}.concurrency() < 2 || detail::this_processor() < 0) return;
  auto const here = std::this_thread::get_id();
  int apart = 0;
  for (int call = 0; call < 100; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    int const mine = detail::this_processor();
    std::atomic<int> helpers = mine, met = 0;
    parallel(cpu<>{2}, 2, [&] {
      return [&](index_t) {
        if (std::this_thread::get_id() != here) helpers = detail::this_processor();
        ++met;
        await([&] { return met == 2; });
      };
    });
    apart += helpers != mine;
  }
  CHECK(apart >
        60);  // where the system sees no processor idle and we do nothing, one in ten; it may move the caller meanwhile
}

#if defined(__linux__) && !defined(ATTUNE_TEST_SANITIZED)
TEST_CASE("thread_pool: in a process made by fork a call runs on its own thread, and exit is no matter") {
  parallel(cpu<>{3}, 3, [] {
    return [](index_t) {};
  });  // some of its threads may watch, and hold the lock, when the process is copied
  for (int call = 0; call < 10; ++call) {
    parallel(cpu<>{2}, 2, [] { return [](index_t) {}; });
    std::fflush(stdout);
    pid_t const child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(60);
      auto const here = std::this_thread::get_id();
      int ran = 0;
      bool alone = true;
      parallel(cpu<>{9}, 30, [&] {
        return [&](index_t) {
          ++ran;
          alone = alone && std::this_thread::get_id() == here;
        };
      });
      std::exit(ran == 30 && alone ? 0 : 1);  // static objects call once more
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == 0);
  }
}
#endif

TEST_CASE("thread_pool: calls from several threads at once, each with exceptions of its own") {
  std::atomic<int> ran = 0, caught = 0;
  {
    std::vector<std::jthread> users;
    for (int user = 0; user < 3; ++user)
      users.emplace_back([&, user] {
        for (int call = 0; call < 300; ++call) {
          std::atomic<int> own = 0;
          try {
            parallel(cpu<>{2 + user}, 5, [&] {
              return [&](index_t task) {
                ++own;
                if (call % 50 == 49 && task == 4) throw user;
              };
            });
          } catch (int of) {
            caught += of == user;
          }
          ran += own;
        }
      });
  }
  CHECK(ran == 3 * 300 * 5);
  CHECK(caught == 3 * 6);
}

TEST_CASE("thread_pool: a call beside one that holds the processors runs on its own thread, and waits for nobody") {
  int const all = thread_pool{}.concurrency() + 1;
  std::atomic<int> inside = 0;
  std::atomic<bool> leave = false;
  std::jthread const other([&] {
    parallel(cpu<>{all}, all, [&] {
      return [&](index_t) {
        ++inside;
        await([&] { return leave.load(); });
      };
    });
  });
  CHECK(await([&] { return inside == all; }));
  auto const here = std::this_thread::get_id();
  std::atomic<int> strangers = 0, ran = 0;
  parallel(cpu<>{2}, 100, [&] {
    return [&](index_t) {
      ++ran;
      strangers += std::this_thread::get_id() != here;
    };
  });
  CHECK(inside == all);
  CHECK(ran == 100);
  CHECK(strangers == 0);
  leave = true;
}

TEST_CASE("thread_pool: run calls every worker once, and from inside a worker on the same thread") {
  std::vector<std::atomic<int>> runs(6);
  std::atomic<int> strangers = 0;
  auto const body = [&](int worker) {
    auto const here = std::this_thread::get_id();
    auto const inner = [&](int) {
      ++runs[std::size_t(worker)];
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // time enough for a helper that should not come
      strangers += std::this_thread::get_id() != here;
    };
    strangers += thread_pool{}.concurrency() - 1;
    thread_pool{}.run(20, inner);  // more than are at work
  };
  for (int call = 0; call < 10; ++call) thread_pool{}.run(6, body);
  for (auto const& n : runs) CHECK(n == 200);
  CHECK(strangers == 0);
}

}  // namespace
}  // namespace attune::test
