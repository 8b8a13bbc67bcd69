// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <atomic>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <vector>

#include <unit/threads/threading.hpp>

#include <attune/exec/cpu/threads.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

using exec_cpu::parallel;

/// f(executor) for executors of every kind.
template <class F>
void for_each_executor(F const& f) {
  counted_threads own;
  SUBCASE("pool") { f(thread_executor_ref(thread_pool{})); }
  SUBCASE("serial") { f(thread_executor_ref(serial{})); }
  SUBCASE("a user's") { f(thread_executor_ref(own)); }
}

TEST_CASE("parallel: every task once, whatever the number of threads") {
  for_each_executor([](thread_executor_ref executor) {
    for (int threads : {-1, 0, 1, 2, 3, 40})
      for (index_t count : {0, 1, 2, 17}) {
        CAPTURE(threads);
        CAPTURE(count);
        std::vector<std::atomic<int>> runs(std::size_t(count) + 1);
        std::atomic<int> workers{0};
        parallel(executor, threads, count, [&] {
          ++workers;
          return [&](index_t task) { ++runs[std::size_t(task)]; };
        });
        for (index_t t = 0; t < count; ++t) CHECK(runs[std::size_t(t)] == 1);
        CHECK(runs[std::size_t(count)] == 0);
        CHECK(workers <= int(count));
        if (threads > 0) CHECK(workers <= threads);
      }
  });
}

TEST_CASE("parallel: one thread takes the tasks in order, with one worker") {
  for_each_executor([](thread_executor_ref executor) {
    std::vector<index_t> order;
    int workers = 0;
    parallel(executor, 1, 4, [&] {
      ++workers;
      return [&](index_t task) { order.push_back(task); };
    });
    CHECK(order == std::vector<index_t>{0, 1, 2, 3});
    CHECK(workers == 1);
  });
}

TEST_CASE("parallel: an exception of a task or of a worker's making reaches the caller, after all threads are done") {
  for_each_executor([](thread_executor_ref executor) {
    for (int threads : {1, 3}) {
      std::atomic<int> running{0};
      std::string text;
      try {
        parallel(executor, threads, 100, [&] {
          return [&](index_t task) {
            ++running;
            if (task == 5) {
              --running;
              throw std::runtime_error("task 5");
            }
            --running;
          };
        });
      } catch (std::runtime_error const& e) {
        text = e.what();
      }
      CHECK(text == "task 5");
      CHECK(running == 0);
      auto const no_worker = [&]() -> void (*)(index_t) { throw std::runtime_error("no memory"); };
      CHECK_THROWS_WITH(parallel(executor, threads, 4, no_worker), "no memory");
    }
  });
}

TEST_CASE("parallel: an exception on a thread that is not the caller's reaches the caller") {
  std::atomic<int> met = 0;
  auto const caller = std::this_thread::get_id();
  CHECK_THROWS_WITH(parallel(thread_pool{}, 2, 2,
                             [&] {
                               return [&](index_t) {
                                 ++met;
                                 await([&] { return met == 2; });
                                 if (std::this_thread::get_id() != caller) throw std::runtime_error("elsewhere");
                               };
                             }),
                    "elsewhere");
}

TEST_CASE("parallel: tasks after an exception are not started by the thread that threw") {
  std::vector<index_t> started;
  CHECK_THROWS(parallel(serial{}, 1, 10, [&] {
    return [&](index_t task) {
      started.push_back(task);
      if (task == 2) throw std::runtime_error("");
    };
  }));
  CHECK(started == std::vector<index_t>{0, 1, 2});
}

TEST_CASE("parallel: a call from inside a task runs on that task's thread, whatever the executors") {
  for_each_executor([](thread_executor_ref outer) {
    counted_threads never;
    for (thread_executor_ref const inner : {outer, thread_executor_ref(thread_pool{}), thread_executor_ref(never)}) {
      std::atomic<int> ran = 0, strangers = 0;
      parallel(outer, 2, 20, [&] {
        return [&](index_t) {
          auto const here = std::this_thread::get_id();
          parallel(inner, 4, 5, [&] {
            return [&](index_t) {
              ++ran;
              strangers += std::this_thread::get_id() != here;
            };
          });
        };
      });
      CHECK(ran == 100);
      CHECK(strangers == 0);
    }
    CHECK(never.calls == 0);
    std::atomic<int> met = 0;  // the next call is no longer inside one
    parallel(thread_pool{}, 2, 2, [&] {
      return [&](index_t) {
        ++met;
        CHECK(await([&] { return met == 2; }));
      };
    });
  });
}

TEST_CASE("parallel: tasks round as the caller does, on threads that were started before it said so") {
  auto const third = [] {
    double const volatile one = 1, three = 3;
    return one / three;
  };
  double const nearest = third();
  double results[2]{};
  counted_threads own;
  for (thread_executor_ref const executor : {thread_executor_ref(thread_pool{}), thread_executor_ref(own)})
    for (int mode : {FE_TONEAREST, FE_UPWARD}) {
      std::atomic<int> met = 0;
      std::fesetround(mode);
      double const here = third();
      parallel(executor, 2, 2, [&] {
        return [&](index_t task) {
          ++met;
          await([&] { return met == 2; });
          results[task] = third();
        };
      });
      std::fesetround(FE_TONEAREST);
      CHECK((here > nearest) == (mode == FE_UPWARD));
      CHECK(results[0] == here);
      CHECK(results[1] == here);
    }
}

}  // namespace
}  // namespace attune::test
