// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A program that runs on any x86-64 and uses what the machine has: xsimd finds out, a table picks the kernel. Nothing
// here may be compiled for more than the oldest machine has.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <attune/core/xsimd.hpp>

#include "attend.hpp"

namespace {

struct candidate {
  char const* name;
  attend_function* run;
  bool (*can_run)();
};
candidate const candidates[] = {{"AVX-512", attend_x86_64_v4, attune::simd::machine_has<xsimd::avx512bw>},
                                {"AVX2 and FMA", attend_x86_64_v3, attune::simd::machine_has<xsimd::fma3<xsimd::avx2>>},
                                {"baseline", attend_baseline, [] { return true; }}};

}  // namespace

int main() {
  constexpr std::ptrdiff_t heads = 2, positions = 100, width = 32;
  std::vector<float> q(heads * positions * width), k(q.size()), v(q.size()), baseline(q.size()), out(q.size());
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (auto* x : {&q, &k, &v})
    for (float& e : *x) e = normal(random);
  attend_baseline(q.data(), k.data(), v.data(), baseline.data(), heads, positions, width);

  bool chosen = false, close = true;
  for (candidate const& c : candidates) {
    if (!c.can_run()) continue;
    if (!chosen) std::fprintf(stderr, "this machine runs: %s\n", c.name);
    chosen = true;
    c.run(q.data(), k.data(), v.data(), out.data(), heads, positions, width);
    for (std::size_t n = 0; n < out.size(); ++n) close = close && std::fabs(out[n] - baseline[n]) < 1e-5f;
  }
  std::printf("every kernel that this machine can run agrees with the baseline: %s\n", close ? "yes" : "NO");
  return close ? 0 : 1;
}
