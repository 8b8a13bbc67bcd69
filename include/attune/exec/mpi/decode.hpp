// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// decode() over ranks.
//
// Few queries, which every rank has, against keys that lie on several ranks. The states of the rows travel.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <attune/exec/mpi/forward.hpp>

namespace attune {

/// Which ranks of a decode() over ranks get the output.
class answer_on {
 public:
  /// Every rank; all get the same bits.
  static answer_on every_rank() { return answer_on(-1); }
  /// Rank r alone. The others pass the extents of the output; nothing is written there. Throws attune::error if r < 0.
  static answer_on rank(int r) {
    if (r < 0)
      throw error("decode", "the answer", attune::detail::text("the rank ", r),
                  "a rank >= 0, or answer_on::every_rank()");
    return answer_on(r);
  }
  /// Whether rank r gets the output.
  bool includes(int r) const { return rank_ < 0 || rank_ == r; }
  /// The rank that gets the output; -1: every rank.
  int number() const { return rank_; }

 private:
  explicit answer_on(int r) : rank_(r) {}
  int rank_;
};

namespace exec_mpi {

/// Sends the states of all rows to the ranks that answer. They merge them in the order of the ranks and write the
/// output. make_states() computes the states of this rank.
template <class T, class Op, class View, class Make>
void merge_and_answer(collective& all, divided_call<T, Op> const& call, Op const& op, inputs<Op, View> const& in,
                      outputs<Op, T> const& out, answer_on answer, Make const& make_states) {
  problem_shape const& p = call.whole;
  int const me = call.me;
  using states = std::remove_cvref_t<decltype(make_states())>;
  std::vector<states> parts(std::size_t(answer.includes(me) ? call.ranks : 1), states(op, p));
  states& own = parts[answer.includes(me) ? std::size_t(me) : 0];
  all.local([&] { own = make_states(); });
  exchange messages = all.messages();
  for (int r = 0; r < call.ranks; ++r) {
    if (r == me) continue;
    if (answer.includes(me))
      each_array_of(parts[std::size_t(r)], [&](auto x) { messages.receive(x, r, tag_of_results); });
    if (answer.includes(r)) each_array_of(own, [&](auto x) { messages.send(x, r, tag_of_results); });
  }
  messages.wait();
  if (!answer.includes(me)) return;
  all.local([&] {
    for (std::size_t r = 1; r < parts.size(); ++r) attune::detail::merge_in_place(parts[0], parts[r]);
    attune::detail::finish_rows(op, in, p, parts.front(), out);
  });
}

/// Facts and checks that both forms of decode() share. `rows`: the extents of the output. more(facts) adds facts.
template <class T, class Op, class Exec, class More>
auto decoded_call(collective_call<Exec>& all, Op const& op, inputs<Op, tensor<T const>> const& in, shape const& rows,
                  answer_on answer, index_t page, More const& more) {
  return divided_call<T, Op>(
      all, op, in, rows,
      [&](call_facts& facts) {
        more(facts);
        facts.add("the answer", "the rank", answer.number()).add("the pages", "a number of keys", page);
        if (answer.number() >= all.size())
          throw error("decode", "the answer", attune::detail::text("the rank ", answer.number()),
                      attune::detail::text("a rank from 0 to ", all.size() - 1));
      },
      rows_on::every_rank);
}

/// decode() of an operator, from keys in one piece.
template <class T, class Arch, class Op>
void decode_operator(collective_call<cpu<T, Arch>>& all, Op const& op, inputs<Op, tensor<T const>> const& in,
                     outputs<Op, T> const& out, answer_on answer) {
  auto const call = decoded_call<T>(all, op, in, out.out.extents(), answer, 0, no_more_facts);
  std::optional<attune::detail::materialized<Op, T>> fixed;
  all.agreed([&] {
    if (answer.includes(call.me)) attune::detail::check_outputs("decode", out, call.whole);
    fixed.emplace(op);
  });
  if (call.whole.batch * call.whole.heads * call.whole.queries == 0) return;
  merge_and_answer(all, call, fixed->op, in, out, answer, [&] {
    auto const intervals = call.keys.intervals(call.me);
    auto const part = [&](std::size_t n) {
      key_interval const keys = n < intervals.size() ? intervals[n] : key_interval{};
      return exec_cpu::decode_part(all.each, fixed->op, call.keys_at(n, keys), call.whole, keys);
    };
    auto states = part(0);
    for (std::size_t n = 1; n < intervals.size(); ++n) {
      auto next = part(n);
      attune::detail::merge_in_place(states, next);
    }
    return states;
  });
}

/// The same from pages of this rank's keys.
template <class T, class Arch, class Op>
void decode_operator(collective_call<cpu<T, Arch>>& all, Op const& op, inputs<Op, tensor<T const>> const& in,
                     page_table const& pages, outputs<Op, T> const& out, answer_on answer) {
  inputs<Op, tensor<T const>> one_piece = in;  // clang 14 does not compile an optional of inputs
  all.agreed([&] { one_piece = attune::detail::in_one_piece(in, pages); });
  auto const call =
      decoded_call<T>(all, op, one_piece, out.out.extents(), answer, in.v.extents().position, no_more_facts);
  auto const intervals = call.keys.intervals(call.me);
  key_interval const keys = intervals.empty() ? key_interval{} : intervals.front();
  std::optional<attune::detail::materialized<Op, T>> fixed;
  all.agreed([&] {
    if (answer.includes(call.me)) attune::detail::check_outputs("decode", out, call.whole);
    attune::detail::require_extent("decode", "pages", "batch", pages.batch(), out.out.extents().batch,
                                   "the batch of out");
    if (intervals.size() > 1)
      throw error("decode", "the sharding of the keys",
                  attune::detail::text(intervals.size(), " intervals of this rank"),
                  "one: pages hold keys that follow one another");
    attune::detail::check_pages(op.mask, call.whole, pages, in.v.extents().position, in.v.extents().batch, keys.first);
    fixed.emplace(op);
  });
  if (call.whole.batch * call.whole.heads * call.whole.queries == 0) return;
  merge_and_answer(all, call, fixed->op, one_piece, out, answer, [&] {
    return exec_cpu::decode_part(all.each, fixed->op, in, call.keys_at(0, {}), pages, call.whole, keys);
  });
}

}  // namespace exec_mpi
}  // namespace attune
