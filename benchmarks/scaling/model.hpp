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

#include <attune/exec/cpu/parts.hpp>
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
  bool overlaps = true;    ///< messages travel while ranks compute; else only while they wait, as through shared memory
};

/// Seconds of what a call does besides the pairs, per row or key of one head.
struct side_cost {
  double merge_row = 0,  ///< to merge the states of two parts of the keys
      finish_row = 0,    ///< to make the output of a row from its state
      add_row = 0,       ///< to add the gradients of a key
      clear_byte = 0;    ///< to get a byte of new memory and to clear it
  side_cost faster(double factor) const {
    return {merge_row / factor, finish_row / factor, add_row / factor, clear_byte};  // one thread gets memory
  }
};

/// The messages of the agreement of a call (exec/mpi/divided_call.hpp): nothing else travels before they have arrived.
struct agreement {
  double reductions,      ///< of one number, to all ranks: agreed points and comparisons
      broadcasts,         ///< from rank 0: sizes, the facts of the call, the numbers of a few pairs
      broadcast_bytes,    ///< of all broadcasts together
      gathers = 2,        ///< from every rank to every other one: extents, and which ranks' keys it sees
      gathered = 8 * 23;  ///< bytes that each rank sends to each other one, besides one per rank
  /// Reductions and broadcasts take a message for each halving of the ranks; the messages of a gather follow one another.
  double seconds(int ranks, network const& net) const {
    if (ranks == 1) return 0;
    double const halvings = std::ceil(std::log2(double(ranks))), others = ranks - 1;
    return halvings * ((reductions + broadcasts) * net.latency + broadcast_bytes / net.bandwidth) +
           gathers * net.latency + others * (gathered + ranks) / net.bandwidth;
  }
  double messages(int ranks) const {
    return ranks == 1 ? 0 : std::ceil(std::log2(double(ranks))) * (reductions + broadcasts) + gathers * (ranks - 1);
  }
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
/// merge_row: seconds to merge the states of a row, which each interval of keys takes but the first of a row; 0: none.
inline block_work work_of(problem const& p, sharding const& s, int of, int with, block_cost const& cost,
                          double merge_row = 0, bool first = false) {
  // A row whose edge cuts a tile of 32 rows and 64 keys costs half a tile more.
  constexpr double edge = 48;
  block_work w;
  double merging = 0;
  for (key_interval const& rows : s.intervals(of)) {
    double const n = double(rows.size());
    double intervals = 0;
    for (key_interval const& keys : s.intervals(with)) {
      intervals += 1;
      double const pairs = visible_pairs(rows, keys, p.window);
      if (pairs <= 0) continue;
      double const all = n * double(keys.size());
      double const computed = pairs < all ? (std::min)(all, pairs + edge * n) : pairs;
      // Each slice of the rows streams the keys that it sees.
      double const slices = std::ceil(n / double(attune::exec_cpu::rows_of_slice(index_t(p.heads))));
      double const shown = slices * (std::min)(double(keys.size()), n / slices + double(p.window));
      w.any = true;
      w.seconds += slices * cost.call + p.heads * (n * cost.row + shown * cost.key + computed * cost.pair);
    }
    merging += p.heads * n * merge_row * (intervals - double(first));
  }
  if (w.any) w.seconds += merging;  // keys that no row sees are not visited
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
  /// `computed`: when both have done what they compute meanwhile.
  double transfer(int from, int to, double bytes, double posted, double computed) {
    if (!net_.overlaps) posted = computed;
    double const start = (std::max)({posted, out_[std::size_t(from)], in_[std::size_t(to)]});
    out_[std::size_t(from)] = in_[std::size_t(to)] = start + bytes / net_.bandwidth;
    bytes_[std::size_t(from)] += bytes;
    messages_[std::size_t(from)] += 1;
    return start + net_.latency + bytes / net_.bandwidth;
  }
  /// All ranks wait for the agreement.
  void agree(agreement const& a) {
    int const ranks = int(clock_.size());
    double const seconds = a.seconds(ranks, net_);
    for (int r = 0; r < ranks; ++r) wait(r, clock(r) + seconds), messages_[std::size_t(r)] += a.messages(ranks);
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

/// What a pass does besides its blocks.
struct pass {
  plan how;
  double there,      ///< bytes per position of what a rank needs to compute: keys and values, or queries
      back,          ///< of what returns: gradients by keys, or states; 0 if nothing does
      add_row,       ///< seconds to add what has returned, per position and head
      merge_row,     ///< to merge the states of a row into those of the keys before
      finish_row,    ///< to make the output of a row
      clear_byte;    ///< to get and clear a byte of memory
  agreement before;  ///< what travels before anything else
};

/// In step t rank r computes block(r, t) with a message that is in flight during step t - 1, and its result returns
/// during step t + 1.
///   ring:    r computes its rows with the keys of r - t; messages and results are blocks of keys
///   states:  r computes the rows of r + t with its keys; messages are queries, results are states
inline prediction simulate(problem const& p, sharding const& s, network const& net, block_cost const& cost,
                           pass const& how) {
  int const ranks = s.ranks();
  bool const ring = how.how == plan::ring;
  simulation all(ranks, net);
  auto const other = [&](int r, int step) { return ring ? (r + ranks - step) % ranks : (r + step) % ranks; };
  // work of rank r in a step; results of the plan `states` begin with the first interval of the keys
  auto const work = [&](int r, int step) {
    int const with = other(r, step);
    return ring ? work_of(p, s, r, with, cost, how.merge_row, step == 0)
                : work_of(p, s, with, r, cost, how.merge_row, true);
  };
  auto const sees = [&](int r, int from) {
    return ring ? work_of(p, s, r, from, {}).any : work_of(p, s, from, r, {}).any;
  };
  auto const count = std::size_t(ranks);
  std::vector<double> computed(count), done(count), returned(count, 0.), returns(count, 0.);
  std::vector<block_work> now(count);
  struct result {
    int from, to;
    double posted;
  };
  std::vector<result> results;  // of the step before
  auto const at = [](std::vector<double> const& x, int a, int b) {
    return (std::max)(x[std::size_t(a)], x[std::size_t(b)]);
  };
  auto const later = [](std::vector<double>& x, int a, int b, double time) {
    for (int end : {a, b}) x[std::size_t(end)] = (std::max)(x[std::size_t(end)], time);
  };
  auto const send_results = [&] {
    for (result const& x : results) {
      double const rows = double(s.size(x.to));
      later(returned, x.from, x.to, all.transfer(x.from, x.to, how.back * rows, x.posted, at(computed, x.from, x.to)));
      returns[std::size_t(x.to)] += how.add_row * rows * p.heads;
    }
    results.clear();
  };
  auto const add_results = [&] {
    for (int r = 0; r < ranks; ++r) {
      auto const n = std::size_t(r);
      all.wait(r, returned[n]);
      all.clock(r) += returns[n];
      returned[n] = returns[n] = 0;
    }
  };
  all.agree(how.before);
  for (int step = 0; step < ranks; ++step) {
    std::fill(done.begin(), done.end(), 0.);
    for (int r = 0; r < ranks; ++r) {
      auto const n = std::size_t(r);
      now[n] = work(r, step);
      double seconds = now[n].seconds;
      // Memory: two blocks that are received; results of every step, to send and, but for the ring, to receive.
      // Nothing is there for keys that no row sees.
      if (step < 2 && step + 1 < ranks && sees(r, other(r, step + 1)))
        seconds += how.clear_byte * how.there * double(s.size(other(r, step + 1)));
      if (step > 0 && now[n].any) seconds += how.clear_byte * how.back * double(s.size(other(r, step)));
      if (step > 0 && !ring && work_of(p, s, r, (r + ranks - step) % ranks, {}).any)
        seconds += how.clear_byte * how.back * double(s.size(r));
      computed[n] = all.clock(r) + seconds;
    }
    send_results();
    for (int r = 0; r < ranks && step + 1 < ranks; ++r) {  // rank r receives what it computes with in the next step
      int const from = other(r, step + 1);
      if (!sees(r, from)) continue;
      double const posted = (std::max)(all.clock(r), all.clock(from));
      later(done, r, from, all.transfer(from, r, how.there * double(s.size(from)), posted, at(computed, r, from)));
    }
    for (int r = 0; r < ranks; ++r) {
      all.clock(r) = computed[std::size_t(r)];
      all.wait(r, done[std::size_t(r)]);
    }
    if (how.back == 0) continue;
    add_results();
    for (int r = 0; r < ranks && step > 0; ++r)
      if (int const to = other(r, step); now[std::size_t(r)].any)
        results.push_back({r, to, (std::max)(all.clock(r), all.clock(to))});
  }
  for (int r = 0; r < ranks; ++r) computed[std::size_t(r)] = all.clock(r);
  send_results();
  add_results();
  for (int r = 0; r < ranks; ++r) all.clock(r) += how.finish_row * double(s.size(r)) * p.heads;
  return all.result();
}

/// The agreement of forward() and of vjp(). The facts have a line for the shard of each rank: 230 bytes for both
/// shardings.
inline agreement agreement_of_forward(int ranks) {
  return {.reductions = 8, .broadcasts = 3, .broadcast_bytes = 3000. + 230 * ranks};
}
inline agreement agreement_of_backward(int ranks) {
  return {.reductions = 7, .broadcasts = 3, .broadcast_bytes = 3000. + 230 * ranks};
}

/// Forward by either plan.
inline prediction forward(problem const& p, sharding const& s, network const& net, plan how, block_cost const& cost,
                          side_cost const& side) {
  double const per_head = p.number * p.heads;
  pass x{.how = how,
         .there = p.of.key * per_head,
         .back = 0,
         .add_row = 0,
         .merge_row = side.merge_row,
         .finish_row = side.finish_row,
         .clear_byte = side.clear_byte,
         .before = agreement_of_forward(s.ranks())};
  if (how == plan::states) x.there = p.of.query * per_head, x.back = p.of.state * per_head, x.add_row = side.merge_row;
  return simulate(p, s, net, cost, x);
}
/// vjp by the ring.
inline prediction backward(problem const& p, sharding const& s, network const& net, block_cost const& cost,
                           side_cost const& side) {
  double const per_head = p.number * p.heads;
  return simulate(p, s, net, cost,
                  {.how = plan::ring,
                   .there = p.of.key * per_head,
                   .back = p.of.key * per_head,
                   .add_row = side.add_row,
                   .merge_row = 0,
                   .finish_row = 0,
                   .clear_byte = side.clear_byte,
                   .before = agreement_of_backward(s.ranks())});
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
