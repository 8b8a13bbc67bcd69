// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{4}      cpu<>{serial{}}      cpu<>{my_threads}
//
// Whose threads run the tasks of a call. A call hands `run(n, body)` n identical workers; each takes tasks from one
// counter until none is left. Which worker runs which task has no influence on any result, so that executors need not
// be fair, or parallel at all.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

namespace attune {

/// What the workers of a call do: body(w) takes tasks until none is left. A reference of two pointers: copy it, but not
/// beyond the `run` that was given it. It never throws: exceptions of tasks travel beside it, to the caller of forward
/// or vjp.
class worker_body {
 public:
  template <class F>
    requires(!std::same_as<F, worker_body> && std::invocable<F const&, int>)
  worker_body(F const& f)  // implicit: run(2, lambda)
      : of_(std::addressof(f)),
        call_([](void const* of, int worker) noexcept { (*static_cast<F const*>(of))(worker); }) {}
  void operator()(int worker) const noexcept { call_(of_, worker); }

 private:
  void const* of_;
  void (*call_)(void const*, int) noexcept;
};

namespace detail {
template <class E>
concept has_concurrency = requires(E& e) {
  { e.concurrency() } -> std::convertible_to<int>;
};
template <class E>
concept runs_workers = requires(E& e, worker_body const& body) { e.run(2, body); };

/// A tag: any object of the type is as good as another.
template <class E>
concept stateless = std::is_empty_v<E> && std::is_trivially_default_constructible_v<std::remove_cv_t<E>>;

/// Whether this thread runs tasks of a call right now. What such a task calls runs serially: the threads are all taken.
inline constinit thread_local bool inside_worker = false;
class worker_scope {
 public:
  worker_scope() : before_(inside_worker) { inside_worker = true; }
  ~worker_scope() { inside_worker = before_; }
  worker_scope(worker_scope const&) = delete;
  worker_scope& operator=(worker_scope const&) = delete;

 private:
  bool before_;
};
}  // namespace detail

/// Whose threads run tasks. `thread_pool` (what cpu{} uses), `serial`, `openmp`, or a type of your own:
///
///   int concurrency()
///       how many workers may run at once; asked by calls that name no number of threads
///   void run(int workers, worker_body body)
///       calls body(w) once for every w in [0, workers), on threads of its choice, in any order or at the same time,
///       and returns when all of them have returned
///
/// Both are called from the thread that calls forward or vjp, from several at once if the user does so, never from
/// inside a task. `run` may throw (no memory, no thread) only when nothing it started still runs. A worker that it
/// leaves out costs speed alone.
template <class E>
concept thread_executor = detail::has_concurrency<E> && detail::runs_workers<E>;

/// The calling thread alone: for callers that are themselves one of many.
struct serial {
  constexpr int concurrency() const { return 1; }
  void run(int workers, worker_body const& body) const {
    for (int w = 0; w < workers; ++w) body(w);
  }
};

/// A reference to an executor of any type: two pointers, no allocation. One with a state must outlive it.
class thread_executor_ref {
 public:
  template <class E>
    requires(std::is_class_v<std::remove_cvref_t<E>> && !std::same_as<std::remove_cvref_t<E>, thread_executor_ref>)
  constexpr thread_executor_ref(E&& executor) : calls_(&calls_of<std::remove_reference_t<E>>) {  // implicit: is one
    using type = std::remove_reference_t<E>;
    static_assert(
        detail::has_concurrency<type>,
        "attune: a thread executor says how many workers may run at once: int concurrency() (docs/howto/threads.md)");
    static_assert(detail::runs_workers<type>,
                  "attune: a thread executor runs workers: void run(int workers, worker_body body), which calls "
                  "body(w) for every w "
                  "in [0, workers) and returns when all have returned (docs/howto/threads.md)");
    static_assert(std::is_lvalue_reference_v<E> || detail::stateless<type>,
                  "attune: a thread executor that has a state is kept by reference and must outlive the calls: give it "
                  "a name first, "
                  "my_threads t; cpu<>{t} (docs/howto/threads.md)");
    if constexpr (!detail::stateless<type>)
      executor_ = const_cast<void*>(static_cast<void const*>(std::addressof(executor)));
  }
  int concurrency() const { return calls_->concurrency(executor_); }
  void run(int workers, worker_body const& body) const { calls_->run(executor_, workers, body); }

 private:
  struct calls {
    int (*concurrency)(void*);
    void (*run)(void*, int, worker_body const&);
  };
  /// f(executor): the one referred to, or one made on the spot.
  template <class E, class F>
  static decltype(auto) with([[maybe_unused]] void* executor, F const& f) {
    if constexpr (detail::stateless<E>) {
      std::remove_cv_t<E> made{};
      return f(made);
    } else {
      return f(*static_cast<E*>(executor));
    }
  }
  // Guarded, so that the assertions above are all that a type without these members gets to say.
  template <class E>
  static int concurrency_of([[maybe_unused]] void* executor) {
    if constexpr (detail::has_concurrency<E>)
      return with<E>(executor, [](auto& e) { return int(e.concurrency()); });
    else
      return 1;
  }
  template <class E>
  static void run_on([[maybe_unused]] void* executor, [[maybe_unused]] int workers,
                     [[maybe_unused]] worker_body const& body) {
    if constexpr (detail::runs_workers<E>) with<E>(executor, [&](auto& e) { e.run(workers, body); });
  }
  template <class E>
  static constexpr calls calls_of{&concurrency_of<E>, &run_on<E>};

  void* executor_ = nullptr;
  calls const* calls_;
};

}  // namespace attune
