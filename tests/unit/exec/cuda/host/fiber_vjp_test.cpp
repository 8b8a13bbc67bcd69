// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <doctest/doctest.h>

#include <attune/exec/cuda/host/fiber_vjp.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "../gradients.hpp"
#include "faulty_warp.hpp"

namespace attune::testing {
namespace {

using test::gradient_extents, test::gradient_problem, test::same_bits;
using width = exec_cuda::widths<64>;

/// A causal call of two tiles of queries, and of two tiles of keys that stream three tiles of rows.
struct problem {
  decltype(softmax_attention(mask::causal{})) op = softmax_attention(mask::causal{});
  gradient_problem<decltype(op), bfloat16> call{op, {.queries = 135, .keys = 140}};
  std::vector<float> saved;

  explicit problem(index_t unseen = -1) {
    if (unseen >= 0) call.spoil(field::q, unseen);
    saved = call.saved<width>();
  }
  template <class Run>
  auto gradients(Run const& run) {
    return call.gradients(
        [&](auto const& in, auto const& d, auto const& to) { run(in, std::span<float const>(saved), d, to); });
  }
  auto on_host() {
    return gradients([&](auto const&... x) { vjp_on_host_warps<width>(op, x...); });
  }
  /// How many of `count` schedules show that something is wrong.
  template <class Right>
  int schedules(fault wrong, int count, Right const& right) {
    int found = 0;
    for (int seed = 0; seed < count; ++seed) {
      faulty_warp::wrong = wrong;
      bool stuck = false;
      auto const got = gradients([&](auto const&... x) {
        try {
          vjp_on_fibers<faulty_warp, width>(op, x..., unsigned(seed));
        } catch (error const&) {
          stuck = true;
        }
      });
      found += stuck || !same_bits(got, right);
    }
    return found;
  }
};

TEST_CASE("gradients on fibers: the same bits in every schedule") {
  problem p;
  CHECK(p.schedules(fault::none, 20, p.on_host()) == 0);
}
TEST_CASE("gradients on fibers: every planted fault is found in every schedule") {
  problem p;
  auto const right = p.on_host();
  for (fault f : faults) {
    INFO("fault ", int(f));
    CHECK(p.schedules(f, 3, right) == 3);
  }
}
TEST_CASE("gradients on fibers: a query that is NaN") {
  problem p(70);
  CHECK(p.schedules(fault::none, 5, p.on_host()) == 0);
}

/// Whether every schedule of a causal call gives the bits of host warps.
template <int Width, class E>
bool same_in_schedules(int count) {
  auto const op = softmax_attention(mask::causal{});
  using widths = exec_cuda::widths<Width>;
  gradient_problem<std::remove_const_t<decltype(op)>, E> call(
      op, {.heads = 2, .queries = 40, .keys = 70, .width = Width, .value_width = Width, .offset = 30});
  auto const saved = call.template saved<widths>();
  auto const right = call.gradients([&](auto const& in, auto const&... x) {
    vjp_on_host_warps<widths>(op, in, std::span<float const>(saved), x...);
  });
  for (int seed = 0; seed < count; ++seed)
    if (!same_bits(right, call.gradients([&](auto const& in, auto const&... x) {
          vjp_on_fibers<fiber_warp, widths>(op, in, std::span<float const>(saved), x..., unsigned(seed));
        })))
      return false;
  return true;
}
TEST_CASE("gradients on fibers: warps that share rows") { CHECK(same_in_schedules<256, bfloat16>(5)); }
TEST_CASE("gradients on fibers: floats") { CHECK(same_in_schedules<64, float>(5)); }

}  // namespace
}  // namespace attune::testing
