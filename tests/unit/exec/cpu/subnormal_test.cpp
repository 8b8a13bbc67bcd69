// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Peaked, underflowing and huge logits: no instruction of a tile reads or makes a subnormal number. The processor
// remembers whether one did. A few of decode() do, where a row's maximum rises.
#include <random>
#include <string>
#include <vector>

#include <attune/attune.hpp>

#include "../../../support/weight_gates.hpp"
#include "../../check.hpp"

#if defined(__SSE2__)
#include <immintrin.h>

namespace attune::test {
namespace {

/// Whether an instruction of the call reads or makes a subnormal number.
template <class Call>
bool meets_subnormals(Call const& call) {
  constexpr unsigned flags = 1u << 1 | 1u << 4;  // denormal operand, underflow
  _mm_setcsr(_mm_getcsr() & ~flags);
  call();
  return (_mm_getcsr() & flags) != 0;
}

TEST_CASE("the test sees a subnormal number") {
  float volatile least = 0x1p-126f;
  CHECK(meets_subnormals([&] { least = least * 0.3f; }));
  CHECK_FALSE(meets_subnormals([&] { least = 1; }));
}

constexpr index_t queries = 70, keys = 300, width = 16;
std::vector<float> drawn(index_t rows, float deviation, float common, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (index_t n = 0; n < rows * width; ++n) x.push_back(common + deviation * normal(random));
  return x;
}

/// Deviation and common part of q: logits of k with a common part of 1.
struct logits {
  std::string name;
  float deviation, common;
};
logits const cases[] = {
    {"peaked", 32, 0}, {"more peaked", 64, 0}, {"underflowing", 200, 0}, {"low", 1, -60}, {"high", 1, 60}};

template <class Op>
void check_no_subnormals(Op op, bool gradients = true) {
  using view = tensor<float const>;
  shape const rows{1, 1, queries, width}, columns{1, 1, keys, width};
  for (logits const& c : cases) {
    std::vector<float> const q = drawn(queries, c.deviation, c.common, 1), k = drawn(keys, 1, 1, 2),
                             v = drawn(keys, 1, 0, 3), by_out = drawn(queries, 1, 0, 4);
    std::vector<float> out(q.size());
    inputs<Op, view> const in{.q = view(q, rows), .k = view(k, columns), .v = view(v, columns)};
    tensor<float> const to(out, rows);
    INFO(c.name);
    CHECK_FALSE(meets_subnormals([&] { forward(cpu<float>{1}, op, in, {.out = to}); }));
    if (gradients) CHECK_FALSE(meets_subnormals([&] { vjp(cpu<float>{1}, op, in, {.out = view(by_out, rows)}); }));
  }
}

TEST_CASE("subnormal numbers: masses relative to a maximum") {
  check_no_subnormals(attention(kernel::dot_product{}));
  check_no_subnormals(
      attention(kernel::dot_product{}, normalizer::self_adjusted<normalizer::adjusted_form::product>{}));
}

TEST_CASE("subnormal numbers: masses relative to nothing") {
  check_no_subnormals(attention(kernel::dot_product{}, normalizer::exponential{}, mask::causal{}));
}

TEST_CASE("subnormal numbers: weight gates") {  // their gradients, and ordered sums, meet a few
  check_no_subnormals(attention(kernel::dot_product{}, weight_decay{0.2}, mask::causal{}), false);
}

}  // namespace
}  // namespace attune::test

#endif
