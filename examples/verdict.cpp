// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A verdict on somebody's kernel: here one that divides by sqrt(D + 1), stored as bf16, where no single element looks
// wrong.
#include <cmath>
#include <cstdio>
#include <vector>

// [snippet: includes]
#include <attune/attune.hpp>
#include <attune/testing/verdict.hpp>
// [/snippet]

namespace {

using namespace attune;

std::vector<float> numbers(index_t count, double seed) {
  std::vector<float> x;
  for (index_t i = 0; i < count; ++i)
    x.push_back(float(2 * std::sin(seed + 1.3 * double(i) + 0.01 * double(i * i % 977))));
  return x;
}

/// Stands for the kernel under test.
std::vector<bfloat16> their_kernel(std::vector<float> const& q, std::vector<float> const& k,
                                   std::vector<float> const& v, shape const& s, double scale) {
  std::vector<float> out(q.size());
  std::vector<bfloat16> stored;
  forward(cpu<float>{1}, attention(kernel::dot_product{scale}, mask::causal{}),
          {.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)}, {.out = tensor(out, s)});
  for (float x : out) stored.push_back(bfloat16(x));
  return stored;
}

}  // namespace

int main() {
  shape const s{1, 2, 64, 64};
  auto const q = numbers(s.size(), 1), k = numbers(s.size(), 2), v = numbers(s.size(), 3);
  std::vector<bfloat16> const out = their_kernel(q, k, v, s, 1 / std::sqrt(65.));

  // [snippet: verdict]
  auto op = attention(kernel::dot_product{}, mask::causal{});  // what their kernel is meant to compute
  auto report = testing::verdict(op, {.q = tensor(q, s), .k = tensor(k, s), .v = tensor(v, s)},
                                 testing::candidate(tensor(out, s)));  // fp64, fp32, fp16 or bf16
  if (auto const* cause = report.cause())
    std::printf("%s: %s is off by %.1f %%\n", name_of(report.decision), cause->name.c_str(), 100 * cause->estimate);
  // [/snippet]
  return report.decision == testing::judgement::fail ? 0 : 1;
}
