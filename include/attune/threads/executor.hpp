// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{4}      cpu<>{serial{}}      cpu<>{my_threads}
//
// Selects the threads that run the tasks of a call. A call passes n identical workers to `run(n, body)`. Each worker
// takes tasks from one shared counter until none is left. Results do not depend on which worker runs which task. So a
// thread executor need not be fair, or parallel at all.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

namespace attune {

/// The function that the workers of a call run: body(w) takes tasks until none is left. It is a reference made of two
/// pointers. You may copy it, but do not use a copy after the `run` that received it has returned. It never throws:
/// exceptions from tasks go to the caller of forward or vjp by another way.
class worker_body {
 public:
  /// Refers to a function object, which must outlive this object and may not throw.
  template <class F>
    requires(!std::same_as<F, worker_body> && std::invocable<F const&, int>)
  worker_body(F const& f)  // implicit: run(2, lambda)
      : of_(std::addressof(f)),
        call_([](void const* of, int worker) noexcept { (*static_cast<F const*>(of))(worker); }) {}
  void operator()(int worker) const noexcept { call_(of_, worker); }  ///< runs worker number `worker`

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

/// A stateless tag type: all its objects are interchangeable.
template <class E>
concept stateless = std::is_empty_v<E> && std::is_trivially_default_constructible_v<std::remove_cv_t<E>>;

/// Whether this thread is running tasks of a call. Calls from inside a task run serially: all threads are busy.
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

/// A thread executor: whose threads run tasks. `thread_pool` (used by cpu{}), `serial`, `openmp`, or your own type:
///
///   int concurrency()
///       how many workers may run at once; queried by calls that name no number of threads
///   void run(int workers, worker_body body)
///       calls body(w) once for every w in [0, workers), on threads of its choice, in any order or at the same time,
///       and returns when all of them have returned
///
/// Both are called on the thread that calls forward or vjp. If you make several calls at once, they are called from
/// several threads at once. They are never called from inside a task. `run` may throw (no memory, no thread) only if
/// nothing that it started is still running. If it leaves out a worker, the call is slower but still correct.
template <class E>
concept thread_executor = detail::has_concurrency<E> && detail::runs_workers<E>;

/// Runs everything on the calling thread. For callers that are themselves one of many threads.
struct serial {
  constexpr int concurrency() const { return 1; }  ///< the calling thread
  /// Runs all workers one after the other.
  void run(int workers, worker_body const& body) const {
    for (int w = 0; w < workers; ++w) body(w);
  }
};

/// A reference to a thread executor of any type: two pointers, no allocation. An executor with state must outlive it.
class thread_executor_ref {
 public:
  /// Refers to an executor. A temporary is accepted only if its type has no state.
  template <class E>
    requires(std::is_class_v<std::remove_cvref_t<E>> && !std::same_as<std::remove_cvref_t<E>, thread_executor_ref>)
  constexpr thread_executor_ref(E&& executor) : calls_(&calls_of<std::remove_reference_t<E>>) {  // implicit
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
  int concurrency() const { return calls_->concurrency(executor_); }  ///< of the executor
  /// Runs the workers on the threads of the executor.
  void run(int workers, worker_body const& body) const { calls_->run(executor_, workers, body); }

 private:
  struct calls {
    int (*concurrency)(void*);
    void (*run)(void*, int, worker_body const&);
  };
  /// Calls f with the executor that this refers to, or, for a stateless type, with a new object.
  template <class E, class F>
  static decltype(auto) with([[maybe_unused]] void* executor, F const& f) {
    if constexpr (detail::stateless<E>) {
      std::remove_cv_t<E> made{};
      return f(made);
    } else {
      return f(*static_cast<E*>(executor));
    }
  }
  // The guards make the assertions above the only errors for a type without these members.
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
