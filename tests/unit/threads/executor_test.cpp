// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <random>
#include <type_traits>

#include <doctest/doctest.h>

#include <attune/attune.hpp>

#include "threading.hpp"

namespace attune::test {

std::vector<double> bits_of(thread_executor_ref executor, int threads) {
  constexpr index_t heads = 3, queries = 70, keys = 90, width = 5;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  auto const make = [&](index_t positions, index_t features) {
    std::vector<double> x(std::size_t(heads * positions * features));
    for (double& e : x) e = normal(random);
    return x;
  };
  auto const q = make(queries, width), k = make(keys, width), v = make(keys, width), gate_q = make(queries, 2),
             gate_k = make(keys, 2), v0 = make(1, width), by_out = make(queries, width);
  auto const view = [](std::vector<double> const& x, index_t positions, index_t features) {
    return tensor<double const>(x, {1, heads, positions, features});
  };
  auto const op = attention(kernel::dot_product{}, gate::softplus{0.5}, normalizer::grounded{-0.5}, mask::causal{});
  inputs<std::remove_const_t<decltype(op)>, tensor<double const>> const in{.q = view(q, queries, width),
                                                                           .k = view(k, keys, width),
                                                                           .v = view(v, keys, width),
                                                                           .gate_q = view(gate_q, queries, 2),
                                                                           .gate_k = view(gate_k, keys, 2),
                                                                           .v0 = view(v0, 1, width)};
  cpu<double> const exec{executor, threads};
  std::vector<double> bits(by_out.size());
  auto const saved = forward_and_save(exec, op, in, {.out = tensor<double>(bits, {1, heads, queries, width})});
  auto const g = vjp(exec, op, in, saved, {.out = view(by_out, queries, width)});
  for (auto const& f : g.fields) bits.insert(bits.end(), f.values.begin(), f.values.end());
  for (auto const& p : g.parameters) bits.insert(bits.end(), p.values.values.begin(), p.values.values.end());
  return bits;
}

namespace {

/// Workers in reverse, one after the other.
struct backwards {
  int concurrency() const { return 3; }
  void run(int n, worker_body const& body) const {
    while (n > 0) body(--n);
  }
};
/// Takes the contract lightly: one worker of all.
struct only_the_last {
  int concurrency() const { return 4; }
  void run(int n, worker_body const& body) const { body(n - 1); }
};
/// Starts nothing.
struct idle {
  int concurrency() const { return 2; }
  void run(int, worker_body const&) const {}
};

TEST_CASE("threading: every executor gives the same bits, forward and backward") {
  auto const expected = bits_of(serial{}, 1);
  double sum = 0;
  for (double x : expected) sum += x * x;
  CHECK(sum > 1);
  counted_threads own;
  for (int threads : {0, 1, 2, 3, 7}) {
    CAPTURE(threads);
    CHECK(bits_of(serial{}, threads) == expected);
    CHECK(bits_of(thread_pool{}, threads) == expected);
    CHECK(bits_of(own, threads) == expected);
    CHECK(bits_of(backwards{}, threads) == expected);
    CHECK(bits_of(only_the_last{}, threads) == expected);
    CHECK(bits_of(idle{}, threads) == expected);
  }
}

TEST_CASE("threading: a user's executor sees the calls, with as many workers as were asked for") {
  counted_threads own;
  bits_of(own, 0);
  int const calls = own.calls;
  CHECK(calls >= 2);  // forward, vjp
  CHECK(own.workers == 2 * calls);
  bits_of(own, 1);  // one thread needs nobody
  CHECK(own.calls == calls);
  bits_of(own, 3);
  CHECK(own.workers > 4 * calls);
}

TEST_CASE("threading: cpu refers to an executor with a state, and makes a stateless one when it needs it") {
  counted_threads own;
  cpu const named{own};
  std::atomic<int> ran = 0;
  auto const body = [&](int worker) { ran += worker + 1; };
  named.executor.run(3, body);
  CHECK(ran == 6);
  CHECK(own.calls == 1);
  cpu const copy = named;
  copy.executor.run(1, body);
  CHECK(own.calls == 2);
  CHECK(cpu{serial{}}.executor.concurrency() == 1);
  CHECK(cpu{serial{}, 4}.threads == 4);
  CHECK(cpu<double>{backwards{}}.executor.concurrency() == 3);
  CHECK(cpu{}.executor.concurrency() == thread_pool{}.concurrency());
  CHECK(cpu_bf16_products{4}.threads == 4);
  CHECK(cpu_bf16_products(cpu<bfloat16>{backwards{}, 2}).executor.concurrency() == 3);
}
static_assert(std::is_same_v<decltype(cpu(cpu<double>{4})), cpu<double>> &&
              std::is_same_v<decltype(cpu{4}), cpu<float>>);
static_assert(!std::is_constructible_v<cpu<float>, cpu<double>> && !std::is_convertible_v<int, cpu<float>>);
static_assert(!std::is_constructible_v<cpu_bf16_products<>, cpu<float>>);

}  // namespace
}  // namespace attune::test
