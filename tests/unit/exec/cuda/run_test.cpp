// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The memory of a call of `cuda`, wherever it begins.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <attune/exec/cuda/host/forward.hpp>
#include <attune/exec/cuda/run.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../../check.hpp"

namespace attune::test {
namespace {

TEST_SUITE_BEGIN("cuda run");

TEST_CASE("an arena takes aligned pieces of any memory, and never more than it counted") {
  std::vector<unsigned char> room(8192);
  for (std::size_t start : {0u, 1u, 2u, 16u, 255u}) {
    exec_cuda::arena count, taken{room.data() + start};
    for (index_t n : {3, 1, 700, 0, 41}) {
      CHECK(count.take<float>(n) == nullptr);
      float* const piece = taken.take<float>(n);
      CHECK(reinterpret_cast<std::uintptr_t>(piece) % exec_cuda::arena::alignment == 0);
      CHECK(reinterpret_cast<unsigned char*>(piece + n) <= room.data() + start + count.needed());
    }
  }
}

TEST_CASE("a workspace that begins at an odd byte gives the same bits") {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  shape const e{1, 2, 40, 24};
  std::vector<bfloat16> q, k, v;
  for (auto* x : {&q, &k, &v})
    for (index_t n = 0; n < e.size(); ++n) x->push_back(bfloat16(normal(random)));
  auto const op = softmax_attention(mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  inputs<op_type, tensor<bfloat16 const>> const in{.q = {q.data(), e}, .k = {k.data(), e}, .v = {v.data(), e}};
  auto const computed = [&](std::size_t start) {
    std::vector<bfloat16> out(q.size());
    outputs<op_type, bfloat16> const to{.out = tensor<bfloat16>(out.data(), e)};
    problem_shape const p = detail::checked_problem("forward", op, in, e);
    testing::host_runner runner;
    exec_cuda::arena memory;
    auto const run = [&] {
      exec_cuda::run_forward<testing::host_runner, op_type, bfloat16>(exec_cuda::widths<64>{}, runner, memory, op, in,
                                                                      to, p);
    };
    run();
    std::vector<unsigned char> room(memory.needed() + start);
    memory = {room.data() + start};
    run();
    CHECK(memory.memory + memory.used <= room.data() + room.size());
    return out;
  };
  auto const even = computed(0);
  for (std::size_t start : {1u, 2u, 100u}) {
    auto const odd = computed(start);
    CHECK(std::memcmp(even.data(), odd.data(), even.size() * sizeof(bfloat16)) == 0);
  }
}

}  // namespace
}  // namespace attune::test
