// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The simulation of calls over ranks: what it counts, and times that can be computed by hand.
#include <random>

#include "../../../../benchmarks/scaling/model.hpp"
#include "../../check.hpp"

namespace attune::test {
namespace {

using namespace bench::scaling;

TEST_CASE("scaling: visible pairs, counted") {
  std::mt19937 random(3);
  auto const draw = [&] {
    index_t const a = index_t(random() % 20), b = index_t(random() % 20);
    return key_interval{(std::min)(a, b), (std::max)(a, b)};
  };
  for (int n = 0; n < 500; ++n) {
    key_interval const rows = draw(), keys = draw();
    index_t const window = 1 + index_t(random() % 25);
    int pairs = 0;
    for (index_t i = rows.first; i < rows.last; ++i)
      for (index_t j = keys.first; j < keys.last; ++j) pairs += j <= i && j > i - window;
    CHECK(visible_pairs(rows, keys, window) == pairs);
  }
}

TEST_CASE("scaling: the cost that goes through four times") {
  block_cost const c{1e-6, 2e-9, 3e-9, 4e-9};
  auto const at = [&](double n, double m) { return c.seconds(n, m, n * m); };
  block_cost const found = measured_times{10, 100, 20, 200, at(10, 20), at(100, 20), at(10, 200), at(100, 200)}.cost();
  CHECK(near(found.call, c.call, 1e-9));
  CHECK(near(found.row, c.row, 1e-9));
  CHECK(near(found.key, c.key, 1e-9));
  CHECK(near(found.pair, c.pair, 1e-9));
}

/// One head; only pairs cost time; the network is free.
problem bare(index_t positions) { return {.positions = positions, .window = positions, .heads = 1, .of = {}}; }
network const free_network{0, 1e300};

TEST_CASE("scaling: without a network the work is divided; zigzag shards are even, contiguous ones are not") {
  problem const p = bare(1 << 20);
  block_cost const cost{0, 0, 0, 1e-12};
  double const one = forward(p, sharding::zigzag(p.positions, 1), free_network, plan::ring, cost, {}).seconds;
  auto const time = [&](sharding const& s, plan how) { return forward(p, s, free_network, how, cost, {}).seconds; };
  for (plan const how : {plan::ring, plan::states}) {
    CHECK(near(time(sharding::zigzag(p.positions, 8), how), one / 8, 0.01));
    CHECK(time(sharding::contiguous(p.positions, 8), how) > 1.8 * one / 8);
  }
  CHECK(forward(p, sharding::zigzag(p.positions, 8), free_network, plan::ring, cost, {}).waiting < 0.01);
}

TEST_CASE("scaling: with two ranks, times by hand") {
  problem p = bare(200);
  p.of = {.query = 1, .key = 2, .out = 1, .state = 3};
  p.number = 4;
  auto const s = sharding::contiguous(200, 2);
  block_cost const cost{1, 0, 0, 0};  // a block takes a second, whatever its size
  network const net{0.25, 800. / 3};  // 100 keys, 800 bytes: 3.25 s
  // Before: 11 reductions and broadcasts, 3460 bytes of broadcasts, 2 gathers of 186 bytes in all.
  double const before = 11 * 0.25 + 3460 * 3 / 800. + 2 * 0.25 + 186 * 3 / 800.;
  auto const ring = forward(p, s, net, plan::ring, cost, {});
  CHECK(near(ring.seconds, before + 3.25 + 1));  // rank 1 waits for the keys of rank 0, then computes
  CHECK(ring.bytes == 800);
  CHECK(ring.messages == 11 + 2 + 1);  // rank 0 sees no key of rank 1: nothing travels there
  // Both before anything else; rank 0 until its keys have left, and at the end; rank 1.
  CHECK(near(ring.waiting, (2 * before + 2.25 + 1 + 2.25) / (before + 4.25) / 2));
  // Queries of rank 1 to rank 0: 400 bytes, 1.75 s. Rank 0 computes from 1.75 on; states back: 1200 bytes, 4.75 s.
  auto const states = forward(p, s, net, plan::states, cost, {});
  CHECK(near(states.seconds, before + 1.75 + 1 + 4.75));
  CHECK(states.bytes == 1200);
  // The ring of vjp: rank 1 computes until 4.25, and its gradients by 100 keys arrive 3.25 s later.
  auto const back = backward(p, s, net, cost, {.add_row = 0.01});
  CHECK(near(back.seconds, before - 0.25 + 4.25 + 3.25 + 100 * 0.01));  // one reduction less
}

TEST_CASE("scaling: a rank's line carries one message at a time") {
  simulation ranks(3, {1, 10});
  CHECK(ranks.transfer(0, 1, 20, 0, 9) == 3);  // 20 / 10 + 1
  CHECK(ranks.transfer(0, 2, 20, 0, 9) == 5);  // after the first has left
  CHECK(ranks.transfer(1, 2, 20, 0, 9) == 7);  // after the second has arrived, but for its latency
  // Without overlap a message leaves when both have computed.
  CHECK(simulation(2, {1, 10, false}).transfer(0, 1, 20, 0, 9) == 12);
}

TEST_CASE("scaling: memory falls with the number of ranks; two blocks are in flight") {
  problem const p{.positions = 1024, .window = 1024, .heads = 2, .of = {.query = 1, .key = 2, .out = 1, .state = 3}};
  CHECK(forward_memory(p, sharding::contiguous(1024, 1), plan::ring) == 4 * 2 * 1024 * 7);
  CHECK(forward_memory(p, sharding::contiguous(1024, 4), plan::ring) == 4 * 2 * 256 * (7 + 4));
  CHECK(forward_memory(p, sharding::contiguous(1024, 4), plan::states) == 4 * 2 * 256 * (7 + 2 + 12));
  CHECK(backward_memory(p, sharding::contiguous(1024, 4)) == 4 * 2 * 256 * (2 + 4 + 2 + 3 + 10));
}

}  // namespace
}  // namespace attune::test
