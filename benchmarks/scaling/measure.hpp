// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   auto const cost = measure(cpu{1}, op, sizes, attempts);   cost.forward, cost.backward
//
// Times of blocks of pairs on this machine, for model.hpp. A block is a call in which every row sees every key.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <attune/attune.hpp>

#include "model.hpp"

namespace bench::scaling {

/// Tensors of one head; which of them an operator reads is its own affair.
struct tensors {
  static constexpr index_t width = 64, gate_width = 16;
  std::vector<float> q, k, v, gate_q, gate_k, v0, out;
  index_t rows, keys;

  tensors(index_t n, index_t m)
      : q(std::size_t(n * width)), k(std::size_t(m * width)), v(k.size()), gate_q(std::size_t(n * gate_width)),
        gate_k(std::size_t(m * gate_width)), v0(std::size_t(width)), out(q.size()), rows(n), keys(m) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto* x : {&q, &k, &v, &gate_q, &gate_k, &v0, &out})
      for (float& e : *x) e = normal(random);
  }
  template <class Op>
  attune::inputs<Op, attune::tensor<float const>> of(Op const&) const {
    auto const view = [](std::vector<float> const& x, index_t n, index_t d) {
      return attune::tensor<float const>(x.data(), {1, 1, n, d});
    };
    index_t const after_all_keys = keys;  // the position of the first row: under a causal mask it sees every key
    if constexpr (Op::uses(attune::field::gate_q))
      return {.q = view(q, rows, width),
              .k = view(k, keys, width),
              .v = view(v, keys, width),
              .gate_q = view(gate_q, rows, gate_width),
              .gate_k = view(gate_k, keys, gate_width),
              .v0 = view(v0, 1, width),
              .offset = after_all_keys};
    else
      return {
          .q = view(q, rows, width), .k = view(k, keys, width), .v = view(v, keys, width), .offset = after_all_keys};
  }
};

template <class F>
double seconds(int attempts, F const& f) {
  double best = (std::numeric_limits<double>::max)();
  for (int n = 0; n < attempts; ++n) {
    auto const start = std::chrono::steady_clock::now();
    f();
    best = (std::min)(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Makes the compiler believe that somebody reads the memory.
inline void keep(void const* memory) { asm volatile("" : : "g"(memory) : "memory"); }

struct operator_cost {
  block_cost forward, backward;
  side_cost side;
};

/// The costs of an operator's blocks of n to N rows and keys: for the sizes that ranks will have.
template <class Exec, class Op>
operator_cost measure(Exec const& exec, Op const& op, index_t n, index_t N, int attempts) {
  measured_times forward{double(n), double(N), double(n), double(N), 0, 0, 0, 0}, backward = forward;
  for (auto const& [rows, keys, to] :
       {std::tuple{n, n, &measured_times::few_few}, std::tuple{N, n, &measured_times::many_few},
        std::tuple{n, N, &measured_times::few_many}, std::tuple{N, N, &measured_times::many_many}}) {
    tensors x(rows, keys);
    auto const in = x.of(op);
    attune::tensor<float const> const by(x.q.data(), {1, 1, rows, tensors::width});
    int const more = rows * keys < N * n ? 10 * attempts : attempts;  // short ones vary more
    forward.*to = seconds(more, [&] { accumulate(exec, op, in, {0, x.keys}); });
    auto const saved = forward_and_save(exec, op, in, {.out = {x.out, {1, 1, rows, tensors::width}}});
    backward.*to = seconds(more, [&] { vjp(exec, op, in, saved, {.out = by}); });
  }
  tensors x(N, n);
  auto a = accumulate(exec, op, x.of(op), {0, n});
  auto const b = a;
  double const merging = seconds(attempts, [&] { a = attune::merge(std::move(a), b); });
  std::vector<float> sum(2 * x.q.size(), 1.f), more(sum);
  double const adding = seconds(attempts, [&] {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += more[e];
  });
  attune::outputs<Op, float> const to{.out = {x.out, {1, 1, N, tensors::width}}};
  double const finishing = seconds(attempts, [&] { finish(op, x.of(op), b, to); });
  std::size_t const many = std::size_t(N) * 2 * tensors::width;
  double const clearing = seconds(attempts, [&] {
    std::vector<float> const block(many);
    keep(block.data());
  });
  return {forward.cost(),
          backward.cost(),
          {merging / double(N), finishing / double(N), adding / double(N), clearing / double(many * sizeof(float))}};
}

}  // namespace bench::scaling
