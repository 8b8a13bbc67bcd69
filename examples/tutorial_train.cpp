// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Gradient descent on a parameter of a policy that the library does not have. A hidden operator makes the targets;
// training finds its parameter.
#include <cmath>
#include <cstdio>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>

using namespace attune;
// [/snippet]

/// An additive term: strength / (1 + |i - j|), a bonus for keys near the query.
struct near_bonus {
  static constexpr auto role = policy_role::kernel;
  using contraction = contraction::none;
  parameter strength = 1;
  static constexpr auto parameters() { return std::array{listed("strength", &near_bonus::strength)}; }
  template <class T>
  struct bound {
    T strength, position;
    T score(key<T> const& k) const { return strength / (T(1) + math::abs(T(position - k.position))); }
  };
  template <class T>
  bound<T> bind(row<T> const& r) const {
    return {r(strength), r.position};
  }
};

std::vector<float> numbers(index_t count, double seed) {
  std::vector<float> x;
  for (index_t i = 0; i < count; ++i) x.push_back(float(std::sin(seed + 1.3 * double(i) + 0.01 * double(i * i % 977))));
  return x;
}

int main() {
  constexpr index_t heads = 2, length = 32, width = 8;
  shape const s{1, heads, length, width};
  auto const q = numbers(s.size(), 1), k = numbers(s.size(), 2), v = numbers(s.size(), 3);
  tensor const Q(q, s), K(k, s), V(v, s);
  std::vector<float> target(q.size()), out(target), by_out(target);
  tensor const O(out, s), DO(by_out, s);

  // [snippet: target]
  std::vector<float> const hidden{3.0f, 0.5f};  // one strength per head: what training has to find
  forward(cpu{}, attention(kernel::dot_product{} + near_bonus{per_head(hidden)}, mask::causal{}),
          {.q = Q, .k = K, .v = V}, {.out = tensor(target, s)});
  // [/snippet]

  // [snippet: train]
  std::vector<float> strength{0.0f, 0.0f};  // the operator views these numbers: a change is seen by the next call
  auto const op = attention(kernel::dot_product{} + near_bonus{per_head(strength)}, mask::causal{});
  for (int step = 0; step <= 100; ++step) {
    auto const saved = forward_and_save(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = O});

    double loss = 0;  // sum |out - target|^2 / 2; its gradient by out goes into by_out, which DO views
    for (std::size_t n = 0; n < out.size(); ++n) {
      by_out[n] = out[n] - target[n];
      loss += 0.5 * double(by_out[n]) * double(by_out[n]);
    }

    auto const g = vjp(cpu{}, op, {.q = Q, .k = K, .v = V}, saved, {.out = DO});
    for (std::size_t h = 0; h < strength.size(); ++h) strength[h] -= 0.03f * g.parameter("strength").values[h];
    if (step % 25 == 0) std::printf("step %3d   loss %.4f\n", step, loss);
  }
  std::printf("strength: %.2f and %.2f\n", strength[0], strength[1]);
  // [/snippet]
  bool const found = std::fabs(strength[0] - hidden[0]) < 0.01f && std::fabs(strength[1] - hidden[1]) < 0.01f;
  return found ? 0 : 1;
}
