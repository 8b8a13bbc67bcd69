// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How long attention over ranks takes, predicted from block times that it measures on this machine and from a network's
// latency and bandwidth. A Markdown table on standard output (docs/explanation/scaling.md).
//
//   attune_scaling [positions=1048576] [heads=16] [window=4096] [latency=2e-6] [bandwidth=12.5e9] [cores=64]
//                  [threads=1] [attempts=5]
//
// cores: a rank computes as fast as that many threads of this machine, all busy. D = Dv = 64, float, zigzag shards.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "measure.hpp"

namespace {

using namespace bench::scaling;

struct settings {
  double positions = 1 << 20, heads = 16, window = 4096, latency = 2e-6, bandwidth = 12.5e9, cores = 64, threads = 1,
         attempts = 5;
};

void read(int argc, char** argv, settings& s) {
  std::pair<char const*, double*> const names[] = {
      {"positions", &s.positions}, {"heads", &s.heads}, {"window", &s.window},   {"latency", &s.latency},
      {"bandwidth", &s.bandwidth}, {"cores", &s.cores}, {"threads", &s.threads}, {"attempts", &s.attempts}};
  for (int n = 1; n < argc; ++n) {
    char const* const is = std::strchr(argv[n], '=');
    double* to = nullptr;
    for (auto const& [name, at] : names)
      if (is != nullptr && std::string(argv[n], std::size_t(is - argv[n])) == name) to = at;
    char* end = nullptr;
    if (to != nullptr) *to = std::strtod(is + 1, &end);
    if (to == nullptr || end == is + 1 || *end != '\0' || !(*to > 0)) {
      std::fprintf(stderr, "attune_scaling: unknown argument or no positive number: %s\n", argv[n]);
      std::exit(2);
    }
  }
}

/// Three digits, as 1234 or 0.0123.
std::string three_digits(double x) {
  if (x == 0) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", x >= 100 ? 0 : x >= 10 ? 1 : x >= 1 ? 2 : x >= 0.1 ? 3 : 4, x);
  return text;
}

template <class Op>
void rows_of(char const* name, Op const& op, settings const& s, double window, double more_width) {
  operator_cost const cost = measure(attune::cpu<float>{int(s.threads)}, op, 64, 2048, int(s.attempts));
  std::fprintf(stderr, "%-18s forward: %.3g us per call, %.3g ns per row, %.3g ns per key, %.4g ns per pair\n", name,
               1e6 * cost.forward.call, 1e9 * cost.forward.row, 1e9 * cost.forward.key, 1e9 * cost.forward.pair);
  std::fprintf(stderr, "%-18s vjp:     %.3g us per call, %.3g ns per row, %.3g ns per key, %.4g ns per pair\n", name,
               1e6 * cost.backward.call, 1e9 * cost.backward.row, 1e9 * cost.backward.key, 1e9 * cost.backward.pair);
  problem p;
  p.positions = index_t(s.positions);
  p.window = index_t(window);
  p.heads = s.heads;
  p.of.query += more_width, p.of.key += more_width;
  network const net{s.latency, s.bandwidth};
  double one = 0, one_back = 0;
  for (int const ranks : {1, 2, 4, 16, 64, 256, 1024}) {
    // Under a causal mask zigzag shards have even work; under a window contiguous ones have it too, and fewer neighbors.
    sharding const at =
        window < s.positions ? sharding::contiguous(p.positions, ranks) : sharding::zigzag(p.positions, ranks);
    prediction const ring = forward(p, at, net, plan::ring, cost.forward.faster(s.cores), cost.side.faster(s.cores)),
                     states =
                         forward(p, at, net, plan::states, cost.forward.faster(s.cores), cost.side.faster(s.cores)),
                     back = backward(p, at, net, cost.backward.faster(s.cores), cost.side.faster(s.cores));
    if (ranks == 1) one = ring.seconds, one_back = back.seconds;
    std::printf("| %s | %d |", name, ranks);
    std::printf(" %s | %.0f | %s | %s | %s | %s | %.0f | %s | %s |\n", three_digits(ring.seconds).c_str(),
                100 * one / ring.seconds / ranks, three_digits(ring.bytes / 1e9).c_str(),
                three_digits(states.seconds).c_str(), three_digits(states.bytes / 1e9).c_str(),
                three_digits(back.seconds).c_str(), 100 * one_back / back.seconds / ranks,
                three_digits(forward_memory(p, at, plan::ring) / 1e9).c_str(),
                three_digits(backward_memory(p, at) / 1e9).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace attune;
  settings s;
  read(argc, argv, s);
  std::printf(
      "| mask, operator | ranks | forward, ring: s | efficiency: %% | sent: GB | forward, states: s | sent: GB | vjp: "
      "s "
      "| efficiency: %% | memory, forward: GB | memory, vjp: GB |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  auto const softmax = attention(kernel::dot_product{}, normalizer::softmax{}, mask::causal{});
  rows_of("causal, softmax", softmax, s, s.positions, 0);
  rows_of("window, softmax", softmax, s, s.window, 0);
  rows_of("causal, Principled", principled_attention({}, mask::causal{}), s, s.positions, tensors::gate_width);
}
