// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   block(n rows, m keys, pairs)  =  call + n row + m key + pairs pair          message(bytes)  =  latency + bytes / bandwidth
//
// How long a call over ranks takes: a simulation of what each rank computes, sends and waits for, step by step, as
// exec/mpi/plans.hpp orders it.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <attune/exec/mpi/sharding.hpp>

namespace bench::scaling {

using attune::index_t;
using attune::key_interval;
using attune::sharding;

/// Seconds of one head of one block of pairs.
struct block_cost {
  double call = 0,  ///< whatever its size
      row = 0,      ///< per row
      key = 0,      ///< per key
      pair = 0;     ///< per visible pair
  double seconds(double rows, double keys, double pairs) const { return call + rows * row + keys * key + pairs * pair; }
  /// The same rank with `factor` times as many processors, all busy. A call stays as it is.
  block_cost faster(double factor) const { return {call, row / factor, key / factor, pair / factor}; }
};

/// The cost that goes through four times: of n and N rows with m and M keys each.
struct measured_times {
  double n, N, m, M;                              ///< sizes
  double few_few, many_few, few_many, many_many;  ///< seconds: (n, m), (N, m), (n, M), (N, M)
  block_cost cost() const {
    double const pair = (many_many - many_few - few_many + few_few) / ((N - n) * (M - m));
    double const row = (many_few - few_few) / (N - n) - pair * m, key = (few_many - few_few) / (M - m) - pair * n;
    double const call = few_few - row * n - key * m - pair * n * m;
    auto const positive = [](double x) { return (std::max)(x, 0.); };
    return {positive(call), positive(row), positive(key), positive(pair)};
  }
};

/// A network: every rank sends and receives one message at a time, both at full speed.
struct network {
  double latency = 2e-6,   ///< seconds
      bandwidth = 12.5e9;  ///< bytes per second, in each direction
};

/// Numbers that a call has per position and head.
struct widths {
  double query = 64,  ///< of the inputs per query
      key = 128,      ///< of the inputs per key: k and v, and others
      out = 64,       ///< of the output
      state = 68;     ///< of a row's state
};

/// A call: self-attention under a mask that shows each row the last `window` positions up to its own.
struct problem {
  index_t positions = 1 << 20;
  index_t window = 1 << 20;  ///< at least 1; `positions` for a causal mask
  double heads = 16;
  widths of;
  double number = 4;  ///< bytes
};

/// The pairs (i, j), i in rows and j in keys, with i - window < j <= i.
inline double visible_pairs(key_interval rows, key_interval keys, index_t window) {
  // |keys up to x| summed over a range of x, as a difference of triangular numbers
  auto const triangle = [](double x) { return x > 0 ? x * (x - 1) / 2 : 0; };
  auto const up_to = [&](double shift) {  // sum over i in rows of max(0, i + shift)
    return triangle(double(rows.last) + shift) - triangle(double(rows.first) + shift);
  };
  auto const seen = [&](double shift) {  // keys j with j <= i + shift
    return up_to(shift + 1 - double(keys.first)) - up_to(shift + 1 - double(keys.last));
  };
  return seen(0) - seen(-double(window));
}

/// The work of rank `of` with the keys of rank `with`: seconds, and whether there is any.
struct block_work {
  double seconds = 0;
  bool any = false;
};
inline block_work work_of(problem const& p, sharding const& s, int of, int with, block_cost const& cost) {
  // A row whose edge cuts a tile of 32 rows and 64 keys costs half a tile more.
  constexpr double edge = 48;
  block_work w;
  for (key_interval const& rows : s.intervals(of))
    for (key_interval const& keys : s.intervals(with)) {
      double const pairs = visible_pairs(rows, keys, p.window);
      if (pairs <= 0) continue;
      double const all = double(rows.size()) * double(keys.size());
      double const computed = pairs < all ? (std::min)(all, pairs + edge * double(rows.size())) : pairs;
      double const shown = (std::min)(double(keys.size()), double(rows.size()) + double(p.window));
      w.any = true;
      w.seconds += cost.call + p.heads * (double(rows.size()) * cost.row + shown * cost.key + computed * cost.pair);
    }
  return w;
}

enum class plan { ring, states };

/// What a simulation finds, for the rank that is last.
struct prediction {
  double seconds = 0,  ///< until the last rank is done
      waiting = 0,     ///< the ranks' share of time in which they wait, on average
      bytes = 0,       ///< sent by the rank that sends most
      messages = 0;    ///< sent by the rank that sends most
};

/// Ranks with clocks and one line in each direction.
class simulation {
 public:
  simulation(int ranks, network const& net)
      : net_(net), clock_(std::size_t(ranks)), out_(clock_), in_(clock_), waited_(clock_), bytes_(clock_),
        messages_(clock_) {}
  double& clock(int rank) { return clock_[std::size_t(rank)]; }
  /// When a message arrives that both ranks have posted at `posted`.
  double transfer(int from, int to, double bytes, double posted) {
    double const start = (std::max)({posted, out_[std::size_t(from)], in_[std::size_t(to)]});
    out_[std::size_t(from)] = in_[std::size_t(to)] = start + bytes / net_.bandwidth;
    bytes_[std::size_t(from)] += bytes;
    messages_[std::size_t(from)] += 1;
    return start + net_.latency + bytes / net_.bandwidth;
  }
  /// Rank computes, then waits until `arrived` if that is later.
  void wait(int rank, double until) {
    double& now = clock(rank);
    if (until > now) waited_[std::size_t(rank)] += until - now, now = until;
  }
  prediction result() const {
    prediction p;
    p.seconds = *std::max_element(clock_.begin(), clock_.end());
    for (std::size_t r = 0; r < clock_.size(); ++r)
      p.waiting += (waited_[r] + p.seconds - clock_[r]) / p.seconds / double(clock_.size());
    p.bytes = *std::max_element(bytes_.begin(), bytes_.end());
    p.messages = *std::max_element(messages_.begin(), messages_.end());
    return p;
  }

 private:
  network net_;
  std::vector<double> clock_, out_, in_, waited_, bytes_, messages_;
};

/// The sizes of messages, in bytes per position.
struct message_sizes {
  double there,  ///< what a rank needs to compute: keys and values, or queries
      back;      ///< what returns: gradients by keys, or states; 0 if nothing does
};

/// One pass: in step t rank r computes block(r, t) with a message that is in flight during step t - 1, and its result
/// returns during step t + 1.
///   ring:    r computes its rows with the keys of r - t; messages and results are blocks of keys
///   states:  r computes the rows of r + t with its keys; messages are queries, results are states
inline prediction simulate(problem const& p, sharding const& s, network const& net, plan how, block_cost const& cost,
                           message_sizes const& sizes, double merge_row) {
  int const ranks = s.ranks();
  simulation all(ranks, net);
  auto const other = [&](int r, int step) {
    return how == plan::ring ? (r + ranks - step) % ranks : (r + step) % ranks;
  };
  // work of rank r in a step
  auto const work = [&](int r, int step) {
    int const with = other(r, step);
    return how == plan::ring ? work_of(p, s, r, with, cost) : work_of(p, s, with, r, cost);
  };
  auto const back = std::size_t(ranks);
  std::vector<double> posted(back), done(back), returned(back, 0.), returns(back, 0.);
  std::vector<block_work> now(back);
  for (int step = 0; step < ranks; ++step) {
    for (int r = 0; r < ranks; ++r) posted[std::size_t(r)] = all.clock(r), done[std::size_t(r)] = 0;
    if (step + 1 < ranks)
      for (int r = 0; r < ranks; ++r) {  // rank r receives what it computes with in the next step
        int const from = other(r, step + 1);
        if (!(how == plan::ring ? work_of(p, s, r, from, {}).any : work_of(p, s, from, r, {}).any)) continue;
        double const bytes = sizes.there * double(s.size(from));
        double const at = all.transfer(from, r, bytes, (std::max)(posted[std::size_t(r)], posted[std::size_t(from)]));
        for (int end : {r, from}) done[std::size_t(end)] = (std::max)(done[std::size_t(end)], at);
      }
    for (int r = 0; r < ranks; ++r) {
      now[std::size_t(r)] = work(r, step);
      all.clock(r) += now[std::size_t(r)].seconds;
      all.wait(r, done[std::size_t(r)]);
    }
    if (sizes.back == 0) continue;
    for (int r = 0; r < ranks; ++r) {  // the results of the step before have arrived: add them
      all.wait(r, returned[std::size_t(r)]);
      all.clock(r) += returns[std::size_t(r)];
      returned[std::size_t(r)] = returns[std::size_t(r)] = 0;
    }
    if (step == 0) continue;
    for (int r = 0; r < ranks; ++r) posted[std::size_t(r)] = all.clock(r);
    for (int r = 0; r < ranks; ++r) {
      int const to = other(r, step);
      if (!now[std::size_t(r)].any) continue;
      double const rows = double(s.size(to));
      double const at =
          all.transfer(r, to, sizes.back * rows, (std::max)(posted[std::size_t(r)], posted[std::size_t(to)]));
      for (int end : {r, to}) returned[std::size_t(end)] = (std::max)(returned[std::size_t(end)], at);
      returns[std::size_t(to)] += merge_row * rows * p.heads;
    }
  }
  if (sizes.back != 0)
    for (int r = 0; r < ranks; ++r) {
      all.wait(r, returned[std::size_t(r)]);
      all.clock(r) += returns[std::size_t(r)];
    }
  return all.result();
}

/// Forward by either plan. merge_row: seconds to merge the state of a row.
inline prediction forward(problem const& p, sharding const& s, network const& net, plan how, block_cost const& cost,
                          double merge_row) {
  double const per_head = p.number * p.heads;
  if (how == plan::ring) return simulate(p, s, net, how, cost, {p.of.key * per_head, 0}, 0);
  return simulate(p, s, net, how, cost, {p.of.query * per_head, p.of.state * per_head}, merge_row);
}
/// vjp by the ring. add_row: seconds to add the gradients of a key.
inline prediction backward(problem const& p, sharding const& s, network const& net, block_cost const& cost,
                           double add_row) {
  double const per_head = p.number * p.heads;
  return simulate(p, s, net, plan::ring, cost, {p.of.key * per_head, p.of.key * per_head}, add_row);
}

/// Bytes of the rank that has most, tensors of the caller included. forward: inputs, output, states, two blocks.
/// backward: inputs, output, cotangent, states, gradients of inputs, two blocks of keys and three of their gradients.
inline double forward_memory(problem const& p, sharding const& s, plan how) {
  widths const& w = p.of;
  double const own = w.query + w.key + w.out + w.state, n = double(s.largest());
  double const blocks = s.ranks() == 1 ? 0 : how == plan::ring ? 2 * w.key : 2 * w.query + 4 * w.state;
  return p.number * p.heads * n * (own + blocks);
}
inline double backward_memory(problem const& p, sharding const& s) {
  widths const& w = p.of;
  double const own = 2 * w.query + 2 * w.key + 2 * w.out + w.state, n = double(s.largest());
  return p.number * p.heads * n * (own + (s.ranks() == 1 ? 0 : 5 * w.key));
}

}  // namespace bench::scaling
