// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   together(exec, "forward", [&](auto& all) {
//     all.agreed([&] { check(); });     throws on all ranks or on none
//     all.local([&] { compute(); });    a throw waits for the next agreed(), or for the end of the call
//     all.sum(numbers);
//   });
//
// Which lines of a call are collective. A function that takes a `collective` is: all ranks call it, at the same place.
// Code that may throw runs in local() or agreed(), on this rank alone. A throw anywhere else ends the program with a
// message, on all ranks, since the others would wait for ever.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/mpi/agree.hpp>
#include <attune/exec/mpi/executor.hpp>

namespace attune::exec_mpi {

using mpi::call_facts;
using mpi::communicator;
using mpi::exchange;

/// All ranks, while they make a call together. Only together() makes one.
class collective {
 public:
  collective(collective const&) = delete;
  collective& operator=(collective const&) = delete;

  /// The name of the call.
  char const* function() const { return function_; }
  /// The number of this rank, and of the ranks.
  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  /// Runs code of this rank, unless earlier code has thrown. It may throw, and calls nothing that is collective, but it
  /// may let messages progress.
  template <class F>
  void local(F const& f) {
    outside();
    errors_.run([&] {
      local_ = true;
      f();
    });
    local_ = false;
  }
  /// The same; then all ranks throw if one has thrown since they last agreed. Returns what f returns.
  template <class F>
  auto agreed(F const& f) {
    if constexpr (std::is_void_v<std::invoke_result_t<F const&>>) {
      local(f);
      meet();
    } else {
      std::optional<std::invoke_result_t<F const&>> result;
      local([&] { result.emplace(f()); });
      meet();
      return std::move(*result);
    }
  }
  /// Throws on all ranks if the facts of one differ.
  void agree(call_facts const& facts) {
    throw_on_all([&] { mpi::agree(ranks(), facts); });
  }
  /// Throws on all ranks if one has an error; the error of the lowest.
  void agree(std::optional<mpi::detail::error_texts> const& mine) {
    auto const first = mpi::detail::first_error(ranks(), mine);
    throw_on_all([&] {
      if (first) mpi::detail::throw_error(*first);
    });
  }

  /// As the communicator has them.
  template <class T>
  void broadcast(std::span<T> numbers, int root) {
    ranks().broadcast(numbers, root);
  }
  template <class T>
  void sum(std::span<T> x) {
    ranks().sum(x);
  }
  /// The numbers of all ranks, one after another. All give as many.
  template <class T>
  std::vector<T> gather(std::vector<T> const& mine) {
    std::vector<T> to(std::size_t(size()) * mine.size());
    std::vector<std::size_t> const sizes(std::size_t(size()), mine.size());
    ranks().gather_to_all(std::span<T const>(mine), std::span<std::size_t const>(sizes), std::span<T>(to));
    return to;
  }
  /// Messages between ranks.
  exchange messages() { return exchange(ranks()); }

 private:
  template <class Exec, class Body>
  friend auto together(across_ranks<Exec> const&, char const*, Body const&);
  template <class Exec>
  friend struct collective_call;

  collective(communicator const& ranks, char const* function) : ranks_(ranks), function_(function) {}

  communicator const& ranks() const {
    outside();
    return ranks_;
  }
  void outside() const {
    if (local_) end("calls a collective function in a local step");
  }
  void meet() {
    throw_on_all([&] { errors_.reach_all(ranks(), function_); });
  }
  template <class F>
  void throw_on_all(F const& f) {
    try {
      f();
    } catch (...) {
      agreed_ = true;
      throw;
    }
  }
  /// Ends the program on all ranks: the others wait for messages that this rank will not send.
  [[noreturn]] void end(char const* what) const {
    std::fprintf(stderr, "attune::%s: rank %d %s; this ends all ranks\n", function_, rank(), what);
    std::terminate();
  }

  communicator const& ranks_;
  char const* function_;
  mpi::failures errors_;
  bool local_ = false, agreed_ = false;
};

/// The same, and what on_ranks() was given.
template <class Exec>
struct collective_call : collective {
  Exec const& each;     ///< computes on this rank
  shards const& where;  ///< which rank holds what

 private:
  template <class E, class Body>
  friend auto together(across_ranks<E> const&, char const*, Body const&);
  collective_call(across_ranks<Exec> const& exec, char const* function)
      : collective(exec.ranks, function), each(exec.each), where(exec.where) {}
};

/// A call of all ranks: body(a collective_call). At its end all ranks throw if one has thrown in local(). Code outside
/// of local() and agreed() may throw only if there is one rank.
template <class Exec, class Body>
auto together(across_ranks<Exec> const& exec, char const* function, Body const& body) {
  collective_call<Exec> all(exec, function);
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body const&, collective_call<Exec>&>>) {
      body(all);
      all.meet();
    } else {
      auto result = body(all);
      all.meet();
      return result;
    }
  } catch (...) {
    if (!all.agreed_ && all.size() > 1) all.end("threw outside of a local step");
    throw;
  }
}

}  // namespace attune::exec_mpi
