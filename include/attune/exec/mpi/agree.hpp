// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   agree(ranks, facts);                         all ranks throw the same error if one differs
//   reach_all(ranks, "forward", [&] { ... });    all ranks throw the same error if one throws
//
// Agreed points: functions that all ranks call, and that throw on all ranks or on none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <attune/exec/mpi/call_facts.hpp>
#include <attune/exec/mpi/communicator.hpp>

namespace attune::mpi {

namespace detail {

/// Texts as bytes: each with its length before it.
inline std::vector<char> packed(std::vector<std::string> const& texts) {
  std::vector<char> bytes;
  for (std::string const& t : texts) {
    std::uint64_t const n = t.size();
    char length[sizeof n];
    std::memcpy(length, &n, sizeof n);
    bytes.insert(bytes.end(), length, length + sizeof n);
    bytes.insert(bytes.end(), t.begin(), t.end());
  }
  return bytes;
}
inline std::vector<std::string> unpacked(std::vector<char> const& bytes) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t n = 0;
    std::memcpy(&n, bytes.data() + at, sizeof n);
    at += sizeof n;
    texts.emplace_back(bytes.data() + at, n);
    at += n;
  }
  return texts;
}
/// The texts of rank `root`, on all ranks.
inline std::vector<std::string> broadcast_texts(communicator const& ranks, std::vector<std::string> const& mine,
                                                int root) {
  std::vector<char> bytes = ranks.rank() == root ? packed(mine) : std::vector<char>();
  std::uint64_t count = bytes.size();
  ranks.broadcast(std::span(&count, 1), root);
  bytes.resize(count);
  ranks.broadcast(std::span(bytes), root);
  return unpacked(bytes);
}

/// The four texts of an attune::error.
struct error_texts {
  std::string function, argument, found, expected;
};
/// The error of the lowest rank that has one, on all ranks.
inline std::optional<error_texts> first_error(communicator const& ranks, std::optional<error_texts> const& mine) {
  int const first = int(ranks.lowest(mine ? ranks.rank() : ranks.size()));
  if (first == ranks.size()) return std::nullopt;
  std::vector<std::string> texts;
  if (first == ranks.rank()) texts = {mine->function, mine->argument, mine->found, mine->expected};
  texts = broadcast_texts(ranks, texts, first);
  return error_texts{texts[0], texts[1], texts[2], texts[3]};
}
[[noreturn]] inline void throw_error(error_texts const& t) { throw error(t.function, t.argument, t.found, t.expected); }

/// The part of a long value in which two values differ; all of it if it is short.
inline std::string excerpt(std::string const& value, std::string const& other) {
  constexpr std::size_t most = 240, before = 60;
  if (value.size() <= most) return value;
  std::size_t same = 0;
  while (same < value.size() && same < other.size() && value[same] == other[same]) ++same;
  std::size_t const from = same < before ? 0 : same - before;
  std::string part = value.substr(from, most);
  return (from > 0 ? "..." : "") + part + (from + most < value.size() ? "..." : "");
}

/// The first fact in which this rank differs from rank 0.
inline std::optional<error_texts> first_difference(int rank, std::vector<call_fact> const& mine,
                                                   std::vector<call_fact> const& first) {
  if (mine == first) return std::nullopt;
  auto const of = [](std::vector<call_fact> const& facts, call_fact const& like) -> call_fact const* {
    for (call_fact const& f : facts)
      if (f.argument == like.argument && f.property == like.property) return &f;
    return nullptr;
  };
  auto const words = [](call_fact const* f, call_fact const* other) -> std::string {
    if (f == nullptr) return "no such argument";
    return (f->property.empty() ? "" : f->property + " ") + excerpt(f->value, other == nullptr ? "" : other->value);
  };
  auto const texts = [&](call_fact const& like, call_fact const* here, call_fact const* there) {
    return error_texts{first.front().value, attune::detail::text(like.argument, " on rank ", rank), words(here, there),
                       words(there, here) + ", as on rank 0"};
  };
  auto const difference = [&](call_fact const& like) -> std::optional<error_texts> {
    call_fact const *here = of(mine, like), *there = of(first, like);
    if (here != nullptr && there != nullptr && here->value == there->value) return std::nullopt;
    return texts(like, here, there);
  };
  // Facts of the same name are compared at the same place; by name, facts that one of the ranks lacks.
  auto const [at, there] = std::mismatch(mine.begin(), mine.end(), first.begin(), first.end());
  if (at != mine.end() && there != first.end() && at->argument == there->argument && at->property == there->property)
    return texts(*at, &*at, &*there);
  for (std::vector<call_fact> const* facts : {&first, &mine})
    for (call_fact const& f : *facts)
      if (auto found = difference(f)) return found;
  return error_texts{first.front().value, attune::detail::text("the call on rank ", rank),
                     "the same facts in another order", "the order of rank 0"};
}

}  // namespace detail

/// Compares the facts of all ranks with rank 0's. If a rank differs, every rank throws the same attune::error. It
/// names the lowest such rank, the argument and both values. All ranks call it. Rank 0 sends its facts once, and each
/// rank one number; nothing else travels unless a rank differs.
inline void agree(communicator const& ranks, call_facts const& facts) {
  if (ranks.size() == 1) return;
  std::vector<std::string> texts;
  for (call_fact const& f : facts.all()) texts.insert(texts.end(), {f.argument, f.property, f.value});
  if (ranks.rank() != 0) texts.clear();
  texts = detail::broadcast_texts(ranks, texts, 0);
  std::vector<call_fact> first;
  for (std::size_t n = 0; n + 2 < texts.size(); n += 3) first.push_back({texts[n], texts[n + 1], texts[n + 2]});
  if (auto const problem = detail::first_error(ranks, detail::first_difference(ranks.rank(), facts.all(), first)))
    detail::throw_error(*problem);
}

/// Keeps an exception of this rank until all ranks reach an agreed point. Between its messages a rank runs code that
/// may throw, for example users' policies. If it stopped there, the others would wait for its messages. So it goes on
/// with its messages and leaves out the computing.
class failures {
 public:
  /// Runs f, unless an earlier call threw.
  template <class F>
  void run(F const& f) {
    if (first_) return;
    try {
      f();
    } catch (...) {
      first_ = std::current_exception();
    }
  }
  /// True if a call threw: the numbers of this rank are meaningless from then on.
  bool any() const { return first_ != nullptr; }

  /// The agreed point; all ranks call it. If a rank has an exception, every rank throws an attune::error with the same
  /// text: it has the number of the lowest such rank and the text of its exception. On a rank that has an exception
  /// itself, that exception is nested in the error (std::rethrow_if_nested).
  void reach_all(communicator const& ranks, std::string_view function) {
    std::exception_ptr const mine = std::exchange(first_, nullptr);
    std::optional<detail::error_texts> texts;
    if (mine)
      texts = {std::string(function), attune::detail::text("rank ", ranks.rank()),
               attune::detail::text("the exception \"", what(mine), "\""), "none on any rank"};
    texts = detail::first_error(ranks, texts);
    if (!texts) return;
    if (!mine) detail::throw_error(*texts);
    try {
      std::rethrow_exception(mine);
    } catch (...) {
      std::throw_with_nested(error(texts->function, texts->argument, texts->found, texts->expected));
    }
  }

 private:
  static std::string what(std::exception_ptr const& e) {
    try {
      std::rethrow_exception(e);
    } catch (std::exception const& x) {
      return x.what();
    } catch (...) {
      return "of a type that is no std::exception";
    }
  }

  std::exception_ptr first_;
};

/// Runs f on this rank; then every rank throws if one has thrown (failures::reach_all). Returns what f returns. All
/// ranks call it. If f exchanges messages, it posts all of a step before it runs code that may throw.
template <class F>
auto reach_all(communicator const& ranks, std::string_view function, F const& f) {
  failures of_this_rank;
  if constexpr (std::is_void_v<std::invoke_result_t<F const&>>) {
    of_this_rank.run(f);
    of_this_rank.reach_all(ranks, function);
  } else {
    std::optional<std::invoke_result_t<F const&>> result;
    of_this_rank.run([&] { result.emplace(f()); });
    of_this_rank.reach_all(ranks, function);
    return std::move(*result);
  }
}

}  // namespace attune::mpi
