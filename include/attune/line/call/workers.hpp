// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   for_each_head(workers{threads}, extents, f)
#pragma once

#include <cstddef>
#include <vector>

#include <attune/exec/cpu/threads.hpp>
#include <attune/line/call/problem.hpp>
#include <attune/threads/pool.hpp>

namespace attune::line::detail {

/// Which threads to use, and how many (0: as many as there are). Results are bitwise the same for any number.
struct workers {
  int threads = 0;
  thread_executor_ref executor = thread_pool{};
};

/// Calls f(batch, head) for every head. Heads that share keys or values run one after the other on one thread. Their
/// gradients are therefore added in the same order for any number of threads.
template <class F>
void for_each_head(workers const& who, extents const& e, F const& f) {
  index_t const groups = e.groups(), each = e.heads / groups;
  exec_cpu::parallel(who.executor, who.threads, e.batch * groups, [&] {
    return [&](index_t task) {
      for (index_t h = task % groups * each; h < (task % groups + 1) * each; ++h) f(task / groups, h);
    };
  });
}

/// The same, where f(batch, head) returns the report of the head. Combines all reports (`include`) in the order of the
/// heads.
template <class Report, class F>
Report report_of_heads(workers const& who, extents const& e, F const& f) {
  std::vector<Report> of_heads(std::size_t(e.batch * e.heads));
  for_each_head(who, e, [&](index_t b, index_t h) { of_heads[std::size_t(b * e.heads + h)] = f(b, h); });
  Report all;
  for (Report const& r : of_heads) all.include(r);
  return all;
}

template <class T, class Arch>
workers workers_of(cpu<T, Arch> const& exec) {
  return {exec.threads, exec.executor};
}

}  // namespace attune::line::detail
