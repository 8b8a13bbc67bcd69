// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   run_gradient_tasks(exec, what_a_call_has, to, runs, run_rows)
//
// Tasks = (batch, head, a chunk of queries). A task has its own rows and writes their query sides directly to the
// result. It shares key sides with other tasks. The first of these tasks writes them directly to the result too. The
// others write them to their own memory, which is then added in the order of the tasks. So the result does not depend
// on which thread ran which task, or when. Nothing here depends on the operator: it is compiled once.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <attune/exec/cpu/contraction/kinds.hpp>
#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/outer.hpp>
#include <attune/exec/cpu/threads.hpp>
#include <attune/exec/gradients.hpp>

namespace attune::exec_cpu {

/// A tensor with a row per key, which all queries read: its heads and width. `in_place`: a task can add to the rows of
/// the result itself.
struct key_side {
  field of;
  index_t heads, width;
  bool in_place = false;
};

/// Describes the backward pass of an operator to its tasks: extents, key sides, shared inputs, memory.
struct gradient_needs {
  problem_shape p;
  key_interval keys;  ///< the keys that the tasks stream
  std::vector<key_side> sides;
  std::vector<field> shared;              ///< inputs with a row per query that several tasks read
  std::vector<shape> parameters, tables;  ///< the extents of what the operator lists
  shape ground_value{0, 0, 0, 0};         ///< of v0; without elements if there is none
  index_t queries_at_once = 1;            ///< each task has a multiple of this number
  index_t resident = 0, scratch = 0;      ///< elements of a worker's memory
  index_t distance_sums = 0;              ///< contractions that need a sum per distance

  /// The extents of the sums of a tensor: as many rows as the tasks compute, if it has a row for every query.
  shape sums_of(shape e) const {
    if (e.position != 1) e.position = p.row_count();
    return e;
  }
};

/// Zero sums of everything that tasks share.
template <class T>
ATTUNE_NOINLINE shared_sums blank_totals(gradient_needs const& needs, attune::detail::gradient_views<T> const& to) {
  shared_sums total;
  for (shape const& e : needs.parameters) total.parameters.emplace_back(e);
  for (shape const& e : needs.tables) total.tables.emplace_back(e);
  if (needs.ground_value.size() != 0) total.ground_value = gradient_array<double>(needs.sums_of(needs.ground_value));
  for (field const f : needs.shared)
    total.inputs.push_back({f, gradient_array<double>(needs.sums_of(to.of(f).extents()))});
  return total;
}
/// Rounds `from` to a result; `first`: the row of the result that is row 0 of the sums.
template <class T>
ATTUNE_NOINLINE void round_to(gradient_array<double> const& from, tensor<T> const& to, index_t first = 0) {
  if (to.absent()) return;
  shape const& e = from.extents;
  if (to.extents().position == 1) first = 0;
  for (index_t b = 0; b < e.batch; ++b)
    for (index_t h = 0; h < e.head; ++h)
      for (index_t i = 0; i < e.position; ++i)
        for (index_t d = 0; d < e.feature; ++d) to(b, h, first + i, d) = T(from(b, h, i, d));
}
/// Rounds all sums, whose rows begin at query `first_query`.
template <class T>
ATTUNE_NOINLINE void round_totals(shared_sums const& total, index_t first_query,
                                  attune::detail::gradient_views<T> const& to) {
  for (std::size_t n = 0; n < total.parameters.size(); ++n) round_to(total.parameters[n], to.parameters[n]);
  for (std::size_t n = 0; n < total.tables.size(); ++n) round_to(total.tables[n], to.tables[n]);
  round_to(total.ground_value, to.of(field::v0), first_query);
  for (auto const& x : total.inputs) round_to(x.sums, to.of(x.of), first_query);
}

template <class T, class Arch>
class gradient_tasks {
  static index_t step_of(index_t width) { return panels<T, Arch>::padded_width(width); }

 public:
  /// Runs the queries [first, last) of (b, h). The gradients of keys, parameters and tables go to the sinks.
  using run_rows = std::function<void(index_t b, index_t h, index_t first, index_t last, T* resident, T* scratch,
                                      gradient_sinks<T>& sinks)>;

  gradient_tasks(cpu<T, Arch> const& exec, gradient_needs needs, attune::detail::gradient_views<T> const& to,
                 shared_sums& total)
      : exec_(exec), needs_(std::move(needs)), p_(needs_.p), to_(to), total_(total) {
    divide();
    for (key_side& side : needs_.sides) {
      tensor<T> const& rows = to.of(side.of);
      side.in_place = side.in_place && side.width == step_of(side.width) && rows.steps().position == side.width &&
                      rows.extents() == shape{p_.batch, side.heads, p_.keys, side.width};
      keys_size_ += needs_.keys.size() * step_of(side.width);
    }
  }

  /// Runs all tasks of the heads for which runs(h) is true.
  void operator()(std::function<bool(index_t)> const& runs, run_rows const& rows) {
    if (p_.batch == 0 || p_.heads == 0 || p_.row_count() == 0) return;
    std::vector<index_t> tasks;
    for (index_t n = 0; n < p_.batch * p_.heads * chunks_; ++n)
      if (runs(n / chunks_ % p_.heads)) tasks.push_back(n);
    std::vector<task_results> results(std::size_t((std::min)(wave, index_t(tasks.size()))));
    for (index_t begin = 0; begin < index_t(tasks.size()); begin += wave) {
      index_t const some = (std::min)(wave, index_t(tasks.size()) - begin);
      parallel(exec_, some, [&] {
        auto const scratch = std::make_shared<aligned_buffer<T>>(needs_.scratch);
        auto const resident = std::make_shared<aligned_buffer<T>>(needs_.resident);
        return [&, scratch, resident](index_t n) {
          index_t const task = tasks[std::size_t(begin + n)], head = task / chunks_, b = head / p_.heads,
                        h = head % p_.heads, first = first_of(task), last = (std::min)(first + chunk_, p_.queries);
          gradient_sinks<T> sinks = sinks_of(results[std::size_t(n)], b, h, first, last);
          rows(b, h, first, last, resident->data(), scratch->data(), sinks);
        };
      });
      for (index_t n = 0; n < some; ++n) {
        index_t const task = tasks[std::size_t(begin + n)], head = task / chunks_;
        add_sums(results[std::size_t(n)].sums, head / p_.heads, head % p_.heads, first_of(task));
      }
      add_keys(results, tasks, begin, some);
    }
  }

 private:
  static constexpr index_t wave = 32;  ///< tasks whose key sides are in memory at a time

  /// The results of one task that are added to the results of other tasks.
  struct task_results {
    std::unique_ptr<aligned_buffer<T>> keys;
    shared_sums sums;
  };

  /// Chunks of queries depend on the shape alone. There are as many as keep a few dozen threads busy, but none is much
  /// shorter than 512 queries.
  void divide() {
    index_t const queries = p_.row_count();
    if (p_.batch == 0 || p_.heads == 0 || queries == 0) return;
    index_t const least = needs_.queries_at_once, rows = p_.batch * p_.heads,
                  wanted = (std::min)((2 * wave + rows - 1) / rows, (queries + 1023) / 1024);
    chunk_ = ((queries + wanted - 1) / wanted + least - 1) / least * least;
    chunks_ = (queries + chunk_ - 1) / chunk_;
  }
  /// The first query of a task.
  index_t first_of(index_t task) const { return p_.first_query + task % chunks_ * chunk_; }
  /// Sums of one head and `rows` queries: a single number where all queries share it.
  shared_sums blank_sums(index_t rows) const {
    auto const own = [&](shape const& e, index_t positions) {
      return gradient_array<double>(shape{1, 1, e.position == 1 ? 1 : positions, e.feature});
    };
    shared_sums s;
    for (shape const& e : needs_.parameters) s.parameters.push_back(own(e, rows));
    for (shape const& e : needs_.tables) s.tables.push_back(own(e, e.position));
    if (needs_.ground_value.size() != 0) s.ground_value = own(needs_.ground_value, rows);
    for (auto const& x : total_.inputs) s.inputs.push_back({x.of, own(x.sums.extents, rows)});
    return s;
  }
  /// Where a task writes its gradients.
  gradient_sinks<T> sinks_of(task_results& result, index_t b, index_t h, index_t first, index_t last) {
    result.sums = blank_sums(last - first);
    gradient_sinks<T> sinks{&to_, {}, &result.sums, {}};
    index_t own = 0;
    for (key_side const& side : needs_.sides) {
      index_t const step = step_of(side.width), size = needs_.keys.size() * step;
      T* rows;
      if (writes_in_place(side, h, first)) {
        rows = to_.of(side.of).row(b, p_.group(h, side.heads), 0);
      } else {
        if (!result.keys) result.keys = std::make_unique<aligned_buffer<T>>(keys_size_);
        rows = result.keys->data() + own;
        std::fill_n(rows, size, T(0));
        rows -= needs_.keys.first * step;
      }
      sinks.keys[std::size_t(side.of)] = {rows, step};
      own += size;
    }
    sinks.first = first;
    sinks.distances.assign(std::size_t(needs_.distance_sums * (p_.queries + p_.keys)), 0.0);
    return sinks;
  }
  /// Whether the task of head h that begins with this query is the first to write its rows of a key side.
  bool writes_in_place(key_side const& side, index_t h, index_t first) const {
    return side.in_place && first == p_.first_query && h * side.heads % p_.heads == 0;
  }

  void add_sums(shared_sums const& s, index_t b, index_t h, index_t first) {
    for (std::size_t n = 0; n < s.parameters.size(); ++n) add_rows(s.parameters[n], total_.parameters[n], b, h, first);
    for (std::size_t n = 0; n < s.tables.size(); ++n) add_rows(s.tables[n], total_.tables[n], b, h, 0);
    index_t const row = first - p_.first_query;
    add_rows(s.ground_value, total_.ground_value, b, h, row);
    for (std::size_t n = 0; n < s.inputs.size(); ++n) add_rows(s.inputs[n].sums, total_.inputs[n].sums, b, h, row);
  }
  ATTUNE_NOINLINE static void add_rows(gradient_array<double> const& from, gradient_array<double>& to, index_t b,
                                       index_t h, index_t first) {
    for (index_t i = 0; i < from.extents.position; ++i)
      for (index_t d = 0; d < from.extents.feature; ++d)
        to(b, h, first + i, d) += from(0, 0, i, d);  // of one row for all queries, the index is ignored
  }
  /// Adds the key sides of some tasks in the order of the tasks. Threads divide the keys among them.
  void add_keys(std::vector<task_results> const& results, std::vector<index_t> const& tasks, index_t begin,
                index_t some) {
    constexpr index_t keys_of_task = 256;
    parallel(exec_, (needs_.keys.size() + keys_of_task - 1) / keys_of_task, [&] {
      return [&](index_t part) {
        index_t const first = needs_.keys.first + part * keys_of_task,
                      last = (std::min)(first + keys_of_task, needs_.keys.last);
        for (index_t n = 0; n < some; ++n) {
          index_t const task = tasks[std::size_t(begin + n)], head = task / chunks_, b = head / p_.heads,
                        h = head % p_.heads;
          index_t own = 0;
          for (key_side const& side : needs_.sides) {
            index_t const step = step_of(side.width);
            if (!writes_in_place(side, h, first_of(task))) {
              T const* const from = results[std::size_t(n)].keys->data() + own - needs_.keys.first * step;
              tensor<T> const& all = to_.of(side.of);
              for (index_t j = first; j < last && !all.absent(); ++j) {
                T* const to = all.row(b, p_.group(h, side.heads), j);
                for (index_t d = 0; d < side.width; ++d) to[d] += from[j * step + d];
              }
            }
            own += needs_.keys.size() * step;
          }
        }
      };
    });
  }

  cpu<T, Arch> exec_;
  gradient_needs needs_;
  problem_shape const& p_;
  attune::detail::gradient_views<T> const& to_;
  index_t keys_size_ = 0, chunk_ = 1, chunks_ = 0;
  shared_sums& total_;
};

/// Runs all tasks of a call. The state of the tasks is created and destroyed here, not in the code of every operator.
template <class T, class Arch>
ATTUNE_NOINLINE void run_gradient_tasks(cpu<T, Arch> const& exec, gradient_needs needs,
                                        attune::detail::gradient_views<T> const& to,
                                        std::function<bool(index_t)> const& runs,
                                        typename gradient_tasks<T, Arch>::run_rows const& rows) {
  shared_sums total = blank_totals(needs, to);
  index_t const first_query = needs.p.first_query;
  gradient_tasks<T, Arch>(exec, std::move(needs), to, total)(runs, rows);
  round_totals(total, first_query, to);
}

}  // namespace attune::exec_cpu
