// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The CPU executor and Thrust on the host: the same operator, the same call.
#include <algorithm>
#include <cstdio>

#if __has_include(<thrust/execution_policy.h>)
#if !defined(THRUST_DEVICE_SYSTEM)
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include <cmath>
#include <random>
#include <vector>

// [snippet: includes]
#include <thrust/execution_policy.h>

#include <attune/attune.hpp>
#include <attune/thrust.hpp>
// [/snippet]

int main() {
  using namespace attune;
  constexpr index_t heads = 2, length = 100, width = 32;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const make = [&] {
    std::vector<float> x(std::size_t(heads * length * width));
    for (float& e : x) e = normal(random);
    return x;
  };
  auto const q = make(), k = make(), v = make();
  std::vector<float> on_cpu(q.size()), on_thrust(q.size());
  shape const s{1, heads, length, width};
  tensor Q(q, s), K(k, s), V(v, s);
  tensor A(on_cpu, s), B(on_thrust, s);

  // [snippet: call]
  auto op = attention(kernel::dot_product{}, mask::causal{});
  forward(cpu{}, op, {.q = Q, .k = K, .v = V}, {.out = A});
  forward(thrust_on(thrust::host), op, {.q = Q, .k = K, .v = V}, {.out = B});
  // [/snippet]

  float worst = 0;
  for (std::size_t n = 0; n < on_cpu.size(); ++n) worst = std::max(worst, std::fabs(on_cpu[n] - on_thrust[n]));
  std::printf("cpu and thrust: %s\n", worst < 1e-5f ? "within 1e-5" : "TOO FAR");
  return worst < 1e-5f ? 0 : 1;
}
#else
int main() { std::puts("skipped: there is no Thrust on the include path"); }
#endif
