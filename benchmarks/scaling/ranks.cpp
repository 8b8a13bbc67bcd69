// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The prediction of model.hpp against calls over ranks: run it with mpiexec. It measures block times on every rank at
// once and the network between them, predicts, and then runs the calls.
//
//   attune_scaling_measured [positions=8192] [threads=1] [attempts=5]
//
// One head, D = Dv = 64, float, causal, zigzag shards. "waiting": the share of time in which a rank waits for messages, of
// the ranks together.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <mpi.h>

#include <attune/mpi.hpp>

#include "measure.hpp"

namespace {

using namespace attune;
using namespace bench::scaling;

/// Seconds of a message of some bytes from each rank to the next, all at once; the largest of the ranks.
double ring_seconds(mpi::communicator const& ranks, std::size_t bytes, int attempts) {
  int const right = (ranks.rank() + 1) % ranks.size(), left = (ranks.rank() + ranks.size() - 1) % ranks.size();
  std::vector<char> sent(bytes, 'x'), got(bytes);
  double const best = seconds(attempts, [&] {
    mpi::exchange messages(ranks);
    messages.receive(std::span(got), left);
    messages.send(std::span(sent), right);
    messages.wait();
  });
  std::vector<double> slowest{best};
  ranks.combine(std::span(slowest), [](double a, double b) { return a > b ? a : b; });
  return slowest[0];
}

/// The slowest rank decides: the best of several attempts, each measured from a common start to the last rank's end.
template <class F>
std::pair<double, double> seconds_and_waiting(mpi::communicator const& ranks, int attempts, F const& f) {
  double best = 1e300, waiting = 0;
  for (int n = 0; n < attempts; ++n) {
    ranks.lowest(0);
    double const waited = ranks.seconds_waited(), start = MPI_Wtime();
    f();
    std::vector<double> const mine{MPI_Wtime() - start};
    std::vector<double> last = mine, sum{ranks.seconds_waited() - waited};
    ranks.combine(std::span(last), [](double a, double b) { return a > b ? a : b; });
    ranks.sum(std::span(sum));
    if (last[0] < best) best = last[0], waiting = sum[0] / last[0] / ranks.size();
  }
  return {best, waiting};
}

void compare(mpi::communicator const& ranks, char const* call, prediction const& expected,
             std::pair<double, double> const& found) {
  if (ranks.rank() == 0)
    std::printf("%-16s predicted %7.4f s, measured %7.4f s (%+.0f %%); waiting predicted %.0f %%, measured %.0f %%\n",
                call, expected.seconds, found.first, 100 * (found.first / expected.seconds - 1), 100 * expected.waiting,
                100 * found.second);
}

void run(index_t positions, int threads, int attempts) {
  mpi::communicator const ranks(MPI_COMM_WORLD);
  auto const op = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  cpu<float> const each{threads};
  sharding const at = sharding::zigzag(positions, ranks.size());
  index_t const mine = at.size(ranks.rank());

  // Costs: all ranks measure at the same time, as they will compute; the mean of the ranks.
  index_t const block = (std::max)(index_t(256), positions / ranks.size() / 2);
  ranks.lowest(0);
  operator_cost cost = measure(each, op, 64, block, attempts);
  std::vector<double> numbers;
  auto const each_number = [&](auto const& f) {
    for (block_cost* c : {&cost.forward, &cost.backward}) f(c->call), f(c->row), f(c->key), f(c->pair);
    f(cost.side.merge_row), f(cost.side.finish_row), f(cost.side.add_row), f(cost.side.clear_byte);
  };
  each_number([&](double& x) { numbers.push_back(x / ranks.size()); });
  ranks.sum(std::span(numbers));
  std::size_t n = 0;
  each_number([&](double& x) { x = numbers[n++]; });

  network net{.overlaps = false};  // ranks of one machine copy through shared memory, while they are in MPI
  if (ranks.size() > 1) {
    std::size_t const many = std::size_t(positions / ranks.size()) * 2 * 64 * 4;
    net.latency = ring_seconds(ranks, 8, 200);
    net.bandwidth = double(many) / (std::max)(ring_seconds(ranks, many, 10 * attempts) - net.latency, 1e-9);
  }
  if (ranks.rank() == 0)
    std::printf("%d ranks of %d threads, %lld positions: %.3g ns per pair forward, %.3g vjp; %.3g us, %.3g GB/s\n",
                ranks.size(), threads, static_cast<long long>(positions), 1e9 * cost.forward.pair,
                1e9 * cost.backward.pair, 1e6 * net.latency, net.bandwidth / 1e9);

  tensors const x(mine, mine);
  shape const local{1, 1, mine, tensors::width};
  inputs<std::remove_const_t<decltype(op)>, tensor<float const>> const in{
      .q = {x.q.data(), local}, .k = {x.k.data(), local}, .v = {x.v.data(), local}};
  tensor<float const> const by(x.out.data(), local);
  std::vector<float> out(x.q.size());
  problem const p{.positions = positions, .window = positions, .heads = 1, .of = {}};
  for (auto const& [how, name, call] : {std::tuple{plan::ring, "forward, ring", rank_plan::ring},
                                        std::tuple{plan::states, "forward, states", rank_plan::states}}) {
    auto const exec = on_ranks(ranks, each, {.queries = at, .keys = at, .plan = call});
    compare(ranks, name, forward(p, at, net, how, cost.forward, cost.side),
            seconds_and_waiting(ranks, attempts, [&] { forward(exec, op, in, {.out = {out.data(), local}}); }));
  }
  auto const exec = on_ranks(ranks, each, {.queries = at, .keys = at, .plan = rank_plan::ring});
  auto const saved = forward_and_save(exec, op, in, {.out = {out.data(), local}});
  compare(ranks, "vjp", backward(p, at, net, cost.backward, cost.side),
          seconds_and_waiting(ranks, attempts, [&] { vjp(exec, op, in, saved, {.out = by}); }));
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, status = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  long positions = 8192, threads = 1, attempts = 5;
  std::pair<char const*, long*> const names[] = {
      {"positions=", &positions}, {"threads=", &threads}, {"attempts=", &attempts}};
  try {
    for (int n = 1; n < argc; ++n) {
      long* to = nullptr;
      std::size_t start = 0;
      for (auto const& [name, at] : names)
        if (std::strncmp(argv[n], name, std::strlen(name)) == 0) to = at, start = std::strlen(name);
      if (to != nullptr) *to = std::atol(argv[n] + start);
      if (to == nullptr || *to < 1)
        throw std::runtime_error(std::string("unknown argument or no positive number: ") + argv[n]);
    }
    run(positions, int(threads), int(attempts));
    status = 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "attune_scaling_measured: %s\n", e.what());
  }
  MPI_Finalize();
  return status;
}
