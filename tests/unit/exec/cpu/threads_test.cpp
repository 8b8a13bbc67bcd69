// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <attune/exec/cpu/threads.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

TEST_CASE("parallel: every task once, whatever the number of threads") {
  for (int threads : {-1, 0, 1, 2, 3, 40})
    for (index_t count : {0, 1, 2, 17}) {
      CAPTURE(threads);
      CAPTURE(count);
      std::vector<std::atomic<int>> runs(std::size_t(count) + 1);
      std::atomic<int> workers{0};
      exec_cpu::parallel(threads, count, [&] {
        ++workers;
        return [&](index_t task) { ++runs[std::size_t(task)]; };
      });
      for (index_t t = 0; t < count; ++t) CHECK(runs[std::size_t(t)] == 1);
      CHECK(runs[std::size_t(count)] == 0);
      if (threads > 0) CHECK(workers <= std::max(1, std::min(threads, int(count))));
    }
}

TEST_CASE("parallel: one thread takes the tasks in order, with one worker") {
  std::vector<index_t> order;
  int workers = 0;
  exec_cpu::parallel(1, 4, [&] {
    ++workers;
    return [&](index_t task) { order.push_back(task); };
  });
  CHECK(order == std::vector<index_t>{0, 1, 2, 3});
  CHECK(workers == 1);
}

TEST_CASE("parallel: an exception of a task or of a worker's making reaches the caller, after all threads are done") {
  for (int threads : {1, 3}) {
    std::atomic<int> running{0};
    std::string text;
    try {
      exec_cpu::parallel(threads, 100, [&] {
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
    CHECK_THROWS_WITH(exec_cpu::parallel(threads, 4, no_worker), "no memory");
  }
}

TEST_CASE("parallel: tasks after an exception are not started by the thread that threw") {
  std::vector<index_t> started;
  CHECK_THROWS(exec_cpu::parallel(1, 10, [&] {
    return [&](index_t task) {
      started.push_back(task);
      if (task == 2) throw std::runtime_error("");
    };
  }));
  CHECK(started == std::vector<index_t>{0, 1, 2});
}

}  // namespace
}  // namespace attune::test
