// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   s = statistics(exec, op, in, rows, {.columns = true})     rows of this rank; columns of its keys over all queries
//
// Statistics over ranks, by the ring of exec/mpi/plans.hpp. Keys travel, values do not; column sums travel back.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <attune/exec/mpi/gradients.hpp>

namespace attune {

namespace exec_mpi {

/// The statistics of one rank while a call computes them.
template <class T, class Arch, class Op>
class rank_statistics {
 public:
  rank_statistics(collective& all, divided_call<T, Op> const& call, cpu<T, Arch> const& exec, Op const& packed,
                  rows_of_rank<T, Op> const& saved, statistics_request const& request)
      : call_(call), exec_(exec), op_(packed), saved_(saved), request_(request), windows_(call.windows(call.me)),
        rows_(windows_.size()), columns_(request.columns ? columns_of(call.me) : 0, 0.0), in_flight_(all.messages()) {}

  /// Adds the keys of a rank. step: of the ring.
  template <class Pause>
  void visit(int step, int rank, rank_fields<T const> const& columns, Pause const& pause) {
    std::vector<double>& sums = sent_[step % 2];
    if (request_.columns) sums.assign(columns_of(rank), 0.0);
    statistics_request of_rows = request_;
    of_rows.columns = false;
    index_t const heads = call_.whole.batch * call_.whole.heads, size = call_.keys.size(rank);
    std::size_t const intervals = call_.keys.intervals(rank).size();
    for (std::size_t w = 0; w < windows_.size(); ++w)
      for (std::size_t n = 0; n < (std::max)(intervals, std::size_t(step == 0)); ++n) {
        key_interval const keys = n < intervals ? call_.keys.intervals(rank)[n] : key_interval{};
        row_statistics<T> part(windows_[w].p, of_rows);
        auto const more = exec_cpu::statistics_of_part(exec_, op_, call_.part(windows_[w], {}, rank, n, columns),
                                                       windows_[w].p, saved_.windows[w], request_, keys, part);
        rows_[w] = rows_[w] ? merge(std::move(*rows_[w]), part) : std::move(part);
        for (index_t head = 0; request_.columns && head < heads; ++head)
          for (index_t j = 0; j < keys.size(); ++j)
            sums[std::size_t(head * size + call_.keys.local_start(rank, n) + j)] +=
                more[std::size_t(head * keys.size() + j)];
        pause();
      }
  }
  /// After the visit of a step: sends its column sums to the rank that has the keys.
  void pass_on(collective&, int step, int rank) {
    if (!request_.columns) return;
    receive_last();
    int const me = call_.me, to = rank_after(call_.ranks, me, step);
    sent_[step % 2].resize(columns_of(rank));  // after an exception: numbers that nobody will use
    if (step == 0) return add(sent_[0]);
    if (call_.sees(to, me)) {
      received_.resize(columns_.size());
      in_flight_.receive(std::span<double>(received_), to, tag_of_results);
      arriving_ = true;
    }
    if (call_.sees(me, rank)) in_flight_.send(std::span<double>(sent_[step % 2]), rank, tag_of_results);
  }
  /// The statistics of this rank: its queries and its keys, one after another.
  row_statistics<T> finish(collective&) {
    receive_last();
    problem_shape own = call_.whole;
    own.queries = call_.queries.size(call_.me);
    own.keys = call_.keys.size(call_.me);
    row_statistics<T> to(own, request_);
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      if (!rows_[w]) continue;  // an exception: the call throws
      row_statistics<T> const& from = *rows_[w];
      problem_shape const& p = windows_[w].p;
      for (index_t b = 0; b < p.batch; ++b)
        for (index_t h = 0; h < p.heads; ++h) {
          index_t const n = from.at(b, h, p.first_query), m = to.at(b, h, windows_[w].local);
          auto const copy = [&](auto const& x, auto& y) {
            if (!x.empty()) std::copy_n(x.begin() + n, p.row_count(), y.begin() + m);
          };
          copy(from.highest_logit, to.highest_logit), copy(from.mean_logit, to.mean_logit);
          copy(from.scored, to.scored), copy(from.highest_weight, to.highest_weight);
          copy(from.mass, to.mass), copy(from.first_key, to.first_key), copy(from.ground_weight, to.ground_weight);
          copy(from.entropy, to.entropy), copy(from.above, to.above);
        }
    }
    std::transform(columns_.begin(), columns_.end(), to.columns.begin(), [](double x) { return T(x); });
    return to;
  }

 private:
  std::size_t columns_of(int rank) const {
    return std::size_t(call_.whole.batch * call_.whole.heads * call_.keys.size(rank));
  }
  void add(std::vector<double> const& more) {
    for (std::size_t n = 0; n < columns_.size(); ++n) columns_[n] += more[n];
  }
  void receive_last() {
    in_flight_.wait();
    if (std::exchange(arriving_, false)) add(received_);
  }

  divided_call<T, Op> const& call_;
  cpu<T, Arch> const& exec_;
  Op const& op_;
  rows_of_rank<T, Op> const& saved_;
  statistics_request request_;
  std::vector<row_window> windows_;
  std::vector<std::optional<row_statistics<T>>> rows_;
  std::vector<double> columns_, sent_[2], received_;
  exchange in_flight_;
  bool arriving_ = false;
};

/// statistics() of an operator.
template <class T, class Arch, class Op>
row_statistics<T> statistics_of_rank(collective_call<cpu<T, Arch>>& all, Op const& op,
                                     inputs<Op, tensor<T const>> const& in, rows_of_rank<T, Op> const& saved,
                                     statistics_request const& request) {
  divided_call<T, Op> const call(all, op, in, rows_of_call<T, Op>(in, {}), [&](call_facts& facts) {
    facts.add("the request", "entropy", request.entropy).add("the request", "columns", request.columns);
    facts.add_presence("above", request.above.has_value()).add("above", "the value", request.above.value_or(0));
  });
  std::optional<attune::detail::with_packed_tables<Op, T>> fixed;
  all.agreed([&] {
    attune::detail::check_request("statistics", request);
    check_saved("statistics", call, saved);
    fixed.emplace(op);
  });
  rank_statistics<T, Arch, Op> sums(all, call, all.each, fixed->op, saved, request);
  visit_ring(
      all, call, [](field f) { return f != field::v && f != field::value_gate; },
      [&](int step, int rank, auto const& columns, auto const& pause) { sums.visit(step, rank, columns, pause); },
      [&](int step, int rank) { sums.pass_on(all, step, rank); });
  return sums.finish(all);
}

}  // namespace exec_mpi
}  // namespace attune
