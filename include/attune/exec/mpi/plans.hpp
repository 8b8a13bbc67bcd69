// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   ring     step t:  rank r computes with the keys of rank r - t
//   states   step t:  rank r computes for the queries of rank r + t, whose states travel back
//
// How the states of a rank's rows come together. In both plans a rank merges the states of the own keys first, then of
// the keys of rank r - 1, r - 2, ... (modulo R). While a rank computes, the next block is in flight. Blocks that no row
// sees are neither sent nor computed.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <attune/exec/cpu/parts.hpp>
#include <attune/exec/mpi/divided_call.hpp>

namespace attune::exec_mpi {

using attune::detail::heads_served;
using exec_cpu::part_of_rows;

/// The tag of what travels back: states and gradients. Blocks have tag 0.
inline constexpr int tag_of_results = 1;

/// Chooses every tensor.
inline constexpr auto every_field = [](field) { return true; };

/// The rank n steps after `rank`.
constexpr int rank_after(int ranks, int rank, int n) { return (rank + n) % ranks; }
constexpr int rank_before(int ranks, int rank, int n) { return (rank + ranks - n) % ranks; }

/// Whether the plan `states` runs an operator. The states of candidate sets have no fixed size, and an ordered sum
/// needs the sums over the keys of other ranks first.
template <class Op>
inline constexpr bool has_states_plan = !Op::has_threshold && !Op::contractions::has_derived;

/// Compares how many numbers travel in both plans, over all pairs of ranks.
template <class T, class Op>
rank_plan cheaper_plan(divided_call<T, Op> const& call) {
  auto const size = [](field_shapes const& shapes) {
    double n = 0;
    for (shape const& e : shapes) n += double(e.size());
    return n;
  };
  if constexpr (!has_states_plan<Op>) return rank_plan::ring;
  constexpr bool second = row_state<T>::template has_second<typename Op::normalizer_policy>;
  problem_shape const& p = call.whole;
  double const per_row = double(p.batch * p.heads * (4 + p.value_width * (second ? 2 : 1)));
  std::vector<double> keys, queries;  // numbers of each rank that travel
  for (int r = 0; r < call.ranks; ++r) {
    keys.push_back(size(call.key_shapes(r)));
    queries.push_back(size(call.query_shapes(r)) + per_row * double(call.queries.size(r)));
  }
  double ring = 0, states = 0;
  for (int of = 0; of < call.ranks; ++of)
    for (int by = 0; by < call.ranks; ++by)
      if (of != by && call.sees(of, by)) {
        ring += keys[std::size_t(by)];
        states += queries[std::size_t(of)];
      }
  return states < ring ? rank_plan::states : rank_plan::ring;
}

/// For each window of rows, and for each interval of keys of each rank: one number for each ordered sum and row.
template <class T, class Op>
class numbers_of_parts {
  static constexpr int sums = contraction::count_ordered<typename Op::contractions>();

 public:
  /// Zeros.
  numbers_of_parts(divided_call<T, Op> const& call, std::vector<row_window> const& windows) : keys_(&call.keys) {
    if (sums == 0) return;
    for (row_window const& w : windows) {
      auto const size = std::size_t(sums) * std::size_t(w.p.batch * w.p.heads * w.p.row_count());
      numbers_.emplace_back(keys_->pieces().size() + 1, std::vector<T>(size, T(0)));
    }
  }
  /// The numbers of window w and interval n of a rank: zeros if the rank has no such interval, nothing without ordered
  /// sums.
  std::span<T> of(std::size_t w, int rank, std::size_t n) {
    if (sums == 0) return {};
    auto const own = keys_->intervals(rank);
    auto const all = keys_->pieces();
    if (n >= own.size()) return numbers_[w][all.size()];
    auto const at = std::lower_bound(all.begin(), all.end(), own[n].first,
                                     [](sharding::piece const& p, index_t first) { return p.at.first < first; });
    return numbers_[w][std::size_t(at - all.begin())];
  }
  /// Replaces the numbers of each interval by the sums of the intervals before it in this order of the keys.
  void sum_before(contraction::key_order order) {
    for (std::vector<std::vector<T>>& parts : numbers_) {
      std::vector<T> sum(parts.back());
      std::size_t const pieces = parts.size() - 1;
      for (std::size_t n = 0; n < pieces; ++n) {
        std::vector<T>& part = parts[order == contraction::key_order::later ? pieces - 1 - n : n];
        for (std::size_t r = 0; r < sum.size(); ++r) {
          T const own = part[r];
          part[r] = sum[r];
          sum[r] += own;
        }
      }
    }
  }

 private:
  sharding const* keys_;                              // of the call, which lives longer
  std::vector<std::vector<std::vector<T>>> numbers_;  // [window][piece of keys_], and zeros behind the last piece
};

/// Adds the keys of one rank, in the order of their intervals, to the states of windows of rows. rows, columns: the
/// tensors of both. A row that sees none of the keys gets the state of no keys.
template <class T, class Arch, class Op, class States, class Pause>
void add_keys_of(divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& op,
                 std::vector<row_window> const& windows, rank_fields<T const> const& rows, int key_rank,
                 rank_fields<T const> const& columns, std::vector<States>& to, part_of_rows part, heads_served runs,
                 numbers_of_parts<T, Op>& running, Pause const& pause) {
  std::size_t const intervals = call.keys.intervals(key_rank).size();
  for (std::size_t w = 0; w < windows.size(); ++w) {
    part_of_rows now = part;
    for (std::size_t n = 0; n < (std::max)(intervals, std::size_t(part == part_of_rows::first)); ++n) {
      key_interval const keys = n < intervals ? call.keys.intervals(key_rank)[n] : key_interval{};
      exec_cpu::add_keys(exec, op, call.part(windows[w], rows, key_rank, n, columns), windows[w].p, keys, to[w], now,
                         runs, running.of(w, key_rank, n), pause);
      now = part_of_rows::next;
    }
  }
}

/// Plan `ring`. chosen(field): whether a tensor with a row per key is needed. visit(step, rank, its tensors, pause)
/// computes with the keys of a rank. The own keys come first, also if no row sees them. after(step, rank) follows on
/// every rank, whether or not its rows see the keys.
template <class T, class Op, class Chosen, class Visit, class After>
void visit_ring(collective& all, divided_call<T, Op> const& call, Chosen const& chosen, Visit const& visit,
                After const& after) {
  int const me = call.me, ranks = call.ranks;
  rank_fields<T const> const own = call.own_keys(chosen);
  sendable_fields<T> const sends(own);
  field_memory<T> blocks[2];
  for (int step = 0; step < ranks; ++step) {
    int const from = rank_before(ranks, me, step), next = rank_before(ranks, me, step + 1),
              to = rank_after(ranks, me, step + 1);
    exchange messages = all.messages();
    if (step + 1 < ranks) {
      if (call.sees(me, next)) receive_fields(messages, blocks[(step + 1) % 2].of(call.key_shapes(next, chosen)), next);
      if (call.sees(to, me)) sends.send(messages, to);
    }
    if (step == 0 || call.sees(me, from))
      all.local([&] {
        visit(step, from, step == 0 ? own : read_only(blocks[step % 2].fields()), [&] { messages.progress(); });
      });
    messages.wait();
    after(step, from);
  }
}

/// The ordered sums of the rows before each part of the keys. Takes a round of the ring.
template <class T, class Arch, class Op>
numbers_of_parts<T, Op> running_of_parts(collective& all, divided_call<T, Op> const& call, cpu<T, Arch> const& exec,
                                         Op const& op, std::vector<row_window> const& windows, heads_served runs) {
  numbers_of_parts<T, Op> running(call, windows);
  if constexpr (has_ordered_sums<Op>) {
    visit_ring(
        all, call, [](field f) { return f != field::v && f != field::value_gate; },
        [&](int, int from, rank_fields<T const> const& columns, auto const& pause) {
          for (std::size_t w = 0; w < windows.size(); ++w)
            for (std::size_t n = 0; n < call.keys.intervals(from).size(); ++n) {
              exec_cpu::ordered_totals(exec, op, call.part(windows[w], {}, from, n, columns), windows[w].p,
                                       call.keys.intervals(from)[n], runs, running.of(w, from, n));
              pause();
            }
        },
        [](int, int) {});
    running.sum_before(contraction::order_of<typename Op::contractions>);
  }
  return running;
}

template <class T, class Arch, class Op, class States>
void states_by_ring(collective& all, divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& op,
                    std::vector<row_window> const& windows, heads_served runs, std::vector<States>& to) {
  numbers_of_parts<T, Op> running = running_of_parts(all, call, exec, op, windows, runs);
  visit_ring(
      all, call, every_field,
      [&](int step, int from, rank_fields<T const> const& columns, auto const& pause) {
        add_keys_of(call, exec, op, windows, {}, from, columns, to,
                    step == 0 ? part_of_rows::first : part_of_rows::next, runs, running, pause);
      },
      [](int, int) {});
}

/// Sends or receives row states.
template <class States, class Transfer>
void each_array_of(States& states, Transfer const& transfer) {
  States::each_array(states, [&](auto& x, index_t) { transfer(std::span(x)); });
}

/// Plan `states`.
template <class T, class Arch, class Op, class States>
void states_by_queries(collective& all, divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& op,
                       std::vector<row_window> const& windows, heads_served runs, std::vector<States>& to) {
  using part_states = row_states<T, typename Op::normalizer_policy>;
  int const me = call.me, count = call.ranks;
  auto const states_for = [&](int rank) {
    std::vector<part_states> states;
    for (row_window const& w : call.windows(rank)) states.emplace_back(op, w.p);
    return states;
  };
  sendable_fields<T> const sends(call.own_queries());
  rank_fields<T const> const own_keys = call.own_keys(every_field);
  numbers_of_parts<T, Op> no_sums(call, {});
  field_memory<T> blocks[2];
  std::vector<part_states> sent[2], received[2];
  exchange states_in_flight[2] = {all.messages(), all.messages()};
  auto const merge_received = [&](int step) {
    states_in_flight[step % 2].wait();
    std::vector<part_states>& part = received[step % 2];
    all.local([&] {
      for (std::size_t w = 0; w < part.size(); ++w) exec_cpu::merge_rows<Op>(exec, to[w], part[w]);
    });
    part.clear();
  };
  for (int step = 0; step < count; ++step) {
    int const target = rank_after(count, me, step), source = rank_before(count, me, step);
    exchange messages = all.messages();
    if (step + 1 < count) {
      int const next = rank_after(count, me, step + 1), by = rank_before(count, me, step + 1);
      if (call.sees(next, me)) receive_fields(messages, blocks[(step + 1) % 2].of(call.query_shapes(next)), next);
      if (call.sees(me, by)) sends.send(messages, by);
    }
    auto const pause = [&] { messages.progress(); };
    if (step == 0) {
      all.local([&] {
        add_keys_of(call, exec, op, windows, {}, me, own_keys, to, part_of_rows::first, runs, no_sums, pause);
      });
    } else {
      exchange& flight = states_in_flight[step % 2];
      if (call.sees(me, source)) {
        received[step % 2] = states_for(me);
        for (part_states& s : received[step % 2])
          each_array_of(s, [&](auto x) { flight.receive(x, source, tag_of_results); });
      }
      if (call.sees(target, me)) {
        sent[step % 2] = states_for(target);
        all.local([&] {
          add_keys_of(call, exec, op, call.windows(target), read_only(blocks[step % 2].fields()), me, own_keys,
                      sent[step % 2], part_of_rows::first, runs, no_sums, [&] { pause(), flight.progress(); });
        });
        for (part_states& s : sent[step % 2]) each_array_of(s, [&](auto x) { flight.send(x, target, tag_of_results); });
      }
      if (step > 1) merge_received(step - 1);
    }
    messages.wait();
  }
  if (count > 1) merge_received(count - 1);
}

/// The states of this rank's rows over all keys.
template <class T, class Arch, class Op, class States>
void states_of_rows(collective_call<cpu<T, Arch>>& all, divided_call<T, Op> const& call, Op const& op,
                    std::vector<row_window> const& windows, heads_served runs, std::vector<States>& to) {
  rank_plan const plan = all.where.plan == rank_plan::chosen ? cheaper_plan(call) : all.where.plan;
  if constexpr (has_states_plan<Op>)
    if (plan == rank_plan::states) return states_by_queries(all, call, all.each, op, windows, runs, to);
  states_by_ring(all, call, all.each, op, windows, runs, to);
}

}  // namespace attune::exec_mpi
