// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>

#include <attune/threads/placement.hpp>
#include <attune/threads/spin.hpp>

#if defined(__linux__)
#include <sys/wait.h>
#endif

namespace attune::test {
namespace {

using detail::thread_placement;

#if defined(__linux__)
cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}
bool same(cpu_set_t const& a, cpu_set_t const& b) { return CPU_EQUAL(&a, &b); }
cpu_set_t without(cpu_set_t set, int processor) {
  CPU_CLR(std::size_t(processor), &set);
  return set;
}
cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::size_t(processor), &set);
  return set;
}
int first_of(cpu_set_t const& set) {
  int n = 0;
  while (!CPU_ISSET(std::size_t(n), &set)) ++n;
  return n;
}

/// f(place, all, first, second) on a thread of its own, whose place ends with it: what it is allowed, and two
/// processors of those. Not where there is one.
template <class F>
void elsewhere(F const& f) {
  std::jthread const thread([&] {
    cpu_set_t const all = allowed();
    if (CPU_COUNT(&all) < 2) return;
    thread_placement place;
    f(place, all, first_of(all), first_of(without(all, first_of(all))));
  });
}

TEST_CASE("thread_placement: off one processor or two, and back to where the thread was allowed") {
  elsewhere([](thread_placement& place, cpu_set_t const& all, int first, int second) {
    CHECK(place.processors() == CPU_COUNT(&all));
    for (int off : {first, second}) {
      place.keep_off(off, -1);
      CHECK(same(allowed(), without(all, off)));
      place.keep_off(first, second);  // it has not woken yet
      CHECK(same(allowed(), without(all, off)));
      place.anywhere();
      CHECK(same(allowed(), all));
    }
    place.keep_off(first, second);
    cpu_set_t const neither = without(without(all, first), second);
    CHECK(same(allowed(), CPU_COUNT(&neither) == 0 ? all : neither));
    place.anywhere();
    CHECK(same(allowed(), all));
    place.keep_off(-1, CPU_SETSIZE + 5);  // one that no set can name
    CHECK(same(allowed(), all));
  });
}

TEST_CASE("thread_placement: another thread's, while it sleeps") {
  cpu_set_t const all = allowed();
  if (CPU_COUNT(&all) < 2) return;
  int const first = first_of(all);
  std::atomic<thread_placement*> place = nullptr;
  std::atomic<bool> placed = false, kept = false;
  std::jthread thread([&] {
    thread_placement own;
    place = &own;
    place.notify_one();
    placed.wait(false);
    kept = same(allowed(), without(all, first)) && detail::this_processor() != first;
  });
  place.wait(nullptr);
  place.load()->keep_off(first, -1);
  placed = true;
  placed.notify_one();
  thread.join();
  CHECK(kept);
}

TEST_CASE("thread_placement: what somebody else decides for a thread holds, also if it is what we had it do") {
  elsewhere([](thread_placement& place, cpu_set_t const&, int first, int second) {
    place.keep_off(first, -1);
    place.anywhere();
    for (int its : {first, second}) {
      cpu_set_t const set = only(its);  // as taskset --all-tasks does
      REQUIRE(sched_setaffinity(0, sizeof set, &set) == 0);
      for (int off : {first, second}) {
        place.keep_off(off, -1);
        place.anywhere();
        CHECK(same(allowed(), set));
        CHECK(place.processors() == 1);
      }
    }
  });
}

TEST_CASE("allowed_processors: of the process, not of the machine") {
  int const machine = int(std::thread::hardware_concurrency());
  CHECK(detail::allowed_processors() >= 1);
  CHECK(detail::allowed_processors() <= machine);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    cpu_set_t const set = only(first_of(allowed()));
    sched_setaffinity(0, sizeof set, &set);
    std::_Exit(detail::allowed_processors());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == 1);
}
#endif

TEST_CASE("spin_until: what comes while it waits, and what does not") {
  CHECK(detail::spin_until([] { return true; }));
  int asked = 0;
  CHECK(detail::spin_until([&] { return ++asked == 10; }));
  CHECK(asked == 10);
  auto const begin = std::chrono::steady_clock::now();
  CHECK_FALSE(detail::spin_until([] { return false; }));
  CHECK(std::chrono::steady_clock::now() - begin >= detail::longest_spin);
}

}  // namespace
}  // namespace attune::test
