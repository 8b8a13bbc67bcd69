// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The minimal executor of threads is one, each copy of it with a member broken is none; cpu stays a small value.
#include <functional>
#include <type_traits>

#include <attune/exec/cpu/executor.hpp>

using namespace attune;

namespace {

struct minimal {
  int concurrency() { return 1; }
  void run(int, worker_body) {}
};
struct standard {
  int concurrency() const;
  void run(int, std::function<void(int)>) const;
};
struct no_concurrency {
  void run(int, worker_body);
};
struct text_concurrency : no_concurrency {
  char const* concurrency();
};
struct no_run {
  int concurrency();
};
struct run_without_number : no_run {
  void run(worker_body);
};
struct run_of_plain_function : no_run {
  void run(int, void (*)(int));
};
struct with_state : minimal {
  int state = 0;
};

static_assert(thread_executor<minimal> && thread_executor<standard> && thread_executor<standard const>);
static_assert(thread_executor<serial> && thread_executor<thread_pool> && thread_executor<thread_executor_ref>);
static_assert(!thread_executor<minimal const>);  // its members are not const
static_assert(!thread_executor<no_concurrency> && !thread_executor<text_concurrency>);
static_assert(!thread_executor<no_run> && !thread_executor<run_without_number> &&
              !thread_executor<run_of_plain_function>);

static_assert(detail::stateless<serial> && detail::stateless<minimal> && !detail::stateless<with_state>);
static_assert(sizeof(thread_executor_ref) == 2 * sizeof(void*) && std::is_trivially_copyable_v<thread_executor_ref>);
static_assert(sizeof(worker_body) == 2 * sizeof(void*) && std::is_trivially_copyable_v<worker_body>);

static_assert(std::is_trivially_copyable_v<cpu<>> && sizeof(cpu<>) == 3 * sizeof(void*));
static_assert(cpu{}.threads == 0 && cpu{4}.threads == 4 && cpu<double>{2}.threads == 2 && cpu<>{serial{}}.threads == 0);
static_assert(std::is_same_v<decltype(cpu{serial{}}), cpu<>> && std::is_same_v<decltype(cpu{thread_pool{}, 3}), cpu<>>);
static_assert(cpu{std::integral_constant<int, 3>{}}.threads == 3);

with_state named;
[[maybe_unused]] constinit cpu<double> of_named{named};
static_assert(std::is_same_v<decltype(cpu{of_named}), cpu<double>>);  // a copy, not an executor of threads

}  // namespace
