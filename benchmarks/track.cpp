// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Our own figures over time: presets x shapes, forward and backward, beside what the machine can do.
//
//   attune_track --benchmark_filter=forward/softmax        names: <pass>/<preset>/<mask>/<shape and threads>
#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <time.h>

#include <attune/attune.hpp>

#include "machine.hpp"

namespace {

using namespace attune;

struct problem {
  index_t heads = 8, key_heads = 8, queries, keys, width;
  int threads = 1;
  shape query_side() const { return {1, heads, queries, width}; }
  shape key_side() const { return {1, key_heads, keys, width}; }
};
problem square(index_t length, index_t width, int threads = 1) {
  return {.queries = length, .keys = length, .width = width, .threads = threads};
}

template <class T>
std::vector<T> random_numbers(index_t count) {
  static std::mt19937 source(1);
  std::normal_distribution<float> normal;
  std::vector<T> x(static_cast<std::size_t>(count));
  for (T& e : x) e = T(normal(source));
  return x;
}

/// Memory for whatever an operator may read.
template <class T>
struct data {
  problem p;
  std::vector<T> q, k, v, gate_q, gate_k, v0, by_out, out;

  explicit data(problem const& of)
      : p(of), q(random_numbers<T>(p.query_side().size())), k(random_numbers<T>(p.key_side().size())),
        v(random_numbers<T>(p.key_side().size())), gate_q(random_numbers<T>(p.query_side().size())),
        gate_k(random_numbers<T>(p.key_side().size())), v0(random_numbers<T>(p.width)),
        by_out(random_numbers<T>(p.query_side().size())), out(q.size()) {}

  using view = tensor<T const>;
  template <class Op>
  inputs<Op, view> in() const {
    view const Q(q, p.query_side()), K(k, p.key_side()), V(v, p.key_side());
    if constexpr (Op::uses(field::gate_q))
      return {.q = Q,
              .k = K,
              .v = V,
              .gate_q = view(gate_q, p.query_side()),
              .gate_k = view(gate_k, p.key_side()),
              .v0 = view(v0, {1, 1, 1, p.width})};
    else
      return {.q = Q, .k = K, .v = V};
  }
  tensor<T> to() { return tensor<T>(out, p.query_side()); }
};

/// Floating-point operations of `products` matrix products over the pairs that a mask shows.
template <class Op>
double flops(problem const& p, double products) {
  double const pairs = double(p.heads) * double(p.queries) * double(p.keys);
  return 2 * products * double(p.width) * pairs * (std::is_same_v<typename Op::mask_policy, mask::causal> ? 0.5 : 1.0);
}
void report(benchmark::State& state, double of_one_call) {
  state.counters["FLOP/s"] = benchmark::Counter(of_one_call, benchmark::Counter::kIsIterationInvariantRate);
}

/// The products of an operator: scores, gates, values; in the backward pass both factors of each have a gradient.
template <class Op>
constexpr double products_forward = Op::uses(field::gate_q) ? 3 : 2;
template <class Op>
constexpr double products_backward = products_forward<Op> + 2 * products_forward<Op> - 1;

template <class T, class Op>
void forward_pass(benchmark::State& state, Op const& op, problem const& p) {
  data<T> x(p);
  for (auto _ : state) forward(cpu<T>(p.threads), op, x.template in<Op>(), {.out = x.to()});
  report(state, flops<Op>(p, products_forward<Op>));
}
template <class Op>
void backward_pass(benchmark::State& state, Op const& op, problem const& p) {
  data<float> x(p);
  cpu<float> const exec(p.threads);
  auto const rows = forward_and_save(exec, op, x.in<Op>(), {.out = x.to()});
  dense_gradients<float> g;
  for (auto _ : state)
    g = vjp(exec, op, x.in<Op>(), rows, {.out = tensor<float const>(x.by_out, p.query_side())}, std::move(g));
  report(state, flops<Op>(p, products_backward<Op>));
}
/// One query against a long cache: bytes of K and V per second, to be compared with read/threads.
template <class Op>
void decode_step(benchmark::State& state, Op const& op, problem const& p) {
  data<float> x(p);
  for (auto _ : state) decode(cpu<float>(p.threads), op, x.in<Op>(), {.out = x.to()});
  state.SetBytesProcessed(int64_t(state.iterations()) * 2 * p.key_side().size() * index_t(sizeof(float)));
}

template <class Function>
void add(std::string const& name, Function const& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)->UseRealTime()->Unit(benchmark::kMillisecond);
}
std::string name_of(problem const& p) {
  auto const n = [](char const* label, index_t x) { return label + std::to_string(x); };
  std::string const keys = p.key_heads == p.heads ? "" : n(" Hk", p.key_heads);
  std::string const lengths = p.queries == p.keys ? n(" L", p.keys) : n(" Lq", p.queries) + n(" Lk", p.keys);
  return n("B1 H", p.heads) + keys + lengths + n(" D", p.width) + n(" T", p.threads);
}
enum class passes { forward, both };
template <passes Which, class Op>
void add(std::string const& name, std::vector<problem> const& problems, Op const& op) {
  for (problem const& p : problems) {
    add("forward/" + name + "/" + name_of(p), [=](benchmark::State& state) { forward_pass<float>(state, op, p); });
    if constexpr (Which == passes::both)
      add("backward/" + name + "/" + name_of(p), [=](benchmark::State& state) { backward_pass(state, op, p); });
  }
}

void add_machine(std::vector<int> const& threads) {
  auto const rate = [](auto const& measure, char const* unit) {
    return [=](benchmark::State& state) {
      double sum = 0;
      for (auto _ : state) sum += measure();
      state.counters[unit] = benchmark::Counter(sum / double(state.iterations()));
    };
  };
  add("machine/fma float", rate([] { return bench::fma_rate<float>(1); }, "FLOP/s"));
  add("machine/fma double", rate([] { return bench::fma_rate<double>(1); }, "FLOP/s"));
#if XSIMD_WITH_AVX512F
  add("machine/fma float AVX2", rate([] { return bench::fma_rate<float, xsimd::fma3<xsimd::avx2>>(1); }, "FLOP/s"));
#endif
  for (int n : threads)
    add("machine/read T" + std::to_string(n), rate([=] { return bench::read_rate(n); }, "bytes_per_second"));
}

/// One call of two workers who want 0.2 ms of a processor each: 0.2 ms if they get two at once, 0.4 if they share one.
void two_workers(benchmark::State& state, std::chrono::milliseconds pause) {
  auto const worked = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  };
  for (auto _ : state) {
    std::this_thread::sleep_for(pause);
    double const start = bench::now();
    thread_pool{}.run(2, [&](int) {
      for (auto const from = worked(); worked() - from < std::chrono::microseconds(200);) {
      }
    });
    state.SetIterationTime(bench::now() - start);
  }
}

void add_all() {
  int const cores = int(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<int> threads{1};
  if (cores > 1) threads.push_back(cores);
  add_machine(threads);
  for (int pause : {0, 1, 20})
    benchmark::RegisterBenchmark(("threads/two workers after " + std::to_string(pause) + " ms").c_str(), two_workers,
                                 std::chrono::milliseconds(pause))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.1);

  std::vector<problem> shapes, decodes;
  for (int n : threads) {
    for (index_t length : {128, 512, 1024, 2048}) shapes.push_back(square(length, 64, n));
    shapes.push_back(square(2048, 128, n));
    for (index_t length : {4096, 32768})
      for (index_t width : {64, 128})
        decodes.push_back({.heads = 32, .key_heads = 8, .queries = 1, .keys = length, .width = width, .threads = n});
  }
  std::vector<problem> const some{square(1024, 64), square(2048, 64)};

  mask::causal const m;
  add<passes::both>("softmax/full", shapes, softmax_attention());
  add<passes::both>("softmax/causal", shapes, softmax_attention(m));
  for (problem const& p : some)
    add("forward/softmax double/full/" + name_of(p),
        [=](benchmark::State& state) { forward_pass<double>(state, softmax_attention(), p); });
  for (problem const& p : decodes)
    add("decode/softmax/full/" + name_of(p),
        [=](benchmark::State& state) { decode_step(state, softmax_attention(), p); });

  add<passes::forward>("off_by_one/causal", some, off_by_one_attention(m));
  add<passes::both>("sink/causal", some, sink_attention(0.5, m));
  add<passes::forward>("ssmax/causal", some, ssmax_attention({.scale = 0.4, .bias = 0}, m));
  add<passes::both>("affine_scaled/causal", some, affine_scaled_attention(0.7, 0.6, m));
  add<passes::forward>("sigmoid/causal", some, sigmoid_attention({}, m));
  add<passes::forward>("alibi/causal", some, alibi_attention(0.25, m));
  add<passes::forward>("softcap/causal", some, softcap_attention(30, m));
  add<passes::both>("principled/causal", some, principled_attention({.alpha = -2, .beta = 0.5, .gamma = 0.3}, m));
  add<passes::both>("entmax15/causal", some, entmax15_attention(m));
  add<passes::forward>("sparsemax/causal", some, sparsemax_attention(m));
  add<passes::forward>("top_k/causal", some, top_k_attention(16, m));
}

}  // namespace

int main(int count, char** arguments) {
  add_all();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
