// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include <attune/exec/spin.hpp>
#include <attune/exec/thread_placement.hpp>

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
int first_of(cpu_set_t const& set) {
  int n = 0;
  while (!CPU_ISSET(std::size_t(n), &set)) ++n;
  return n;
}

/// On a thread of its own, whose place ends with it.
template <class F>
void elsewhere(F const& f) {
  std::jthread const thread(f);
}

TEST_CASE("thread_placement: all processors but one, another one, all of them") {
  elsewhere([] {
    cpu_set_t const all = allowed();
    if (CPU_COUNT(&all) < 2) return;
    int const first = first_of(all), second = first_of(without(all, first));
    thread_placement place;
    for (int processor : {first, second, second}) {
      place.keep_off(processor);
      CHECK(same(allowed(), without(all, processor)));
    }
    place.keep_off(-1);
    CHECK(same(allowed(), all));
    place.keep_off(CPU_SETSIZE + 5);  // one that no set can name
    CHECK(same(allowed(), all));
  });
}

TEST_CASE("thread_placement: another thread's, while it sleeps") {
  std::atomic<thread_placement*> place = nullptr;
  std::atomic<bool> placed = false, kept = true;
  cpu_set_t const all = allowed();
  int const first = first_of(all);
  std::jthread const thread([&] {
    thread_placement own;
    place = &own;
    place.notify_one();
    placed.wait(false);
    if (CPU_COUNT(&all) > 1) kept = same(allowed(), without(all, first)) && detail::this_processor() != first;
  });
  place.wait(nullptr);
  place.load()->keep_off(first);
  placed = true;
  placed.notify_one();
  const_cast<std::jthread&>(thread).join();
  CHECK(kept);
}

TEST_CASE("thread_placement: what somebody else decides for a thread holds") {
  elsewhere([] {
    cpu_set_t const all = allowed();
    if (CPU_COUNT(&all) < 2) return;
    int const first = first_of(all), second = first_of(without(all, first));
    thread_placement place;
    place.keep_off(first);
    cpu_set_t only;  // as taskset --all-tasks does
    CPU_ZERO(&only);
    CPU_SET(std::size_t(first), &only);
    REQUIRE(sched_setaffinity(0, sizeof only, &only) == 0);
    place.keep_off(second);
    CHECK(same(allowed(), only));
    place.keep_off(first);  // its only one: stays
    CHECK(same(allowed(), only));
    place.keep_off(-1);
    CHECK(same(allowed(), only));
  });
}
#endif

TEST_CASE("spin_until: what comes while it waits, and what does not") {
  CHECK(detail::spin_until([] { return true; }));
  int asked = 0;
  CHECK(detail::spin_until([&] { return ++asked == 40; }));
  CHECK(asked == 40);
  auto const begin = std::chrono::steady_clock::now();
  CHECK_FALSE(detail::spin_until([] { return false; }));
  CHECK(std::chrono::steady_clock::now() - begin >= detail::longest_spin);
}

}  // namespace
}  // namespace attune::test
