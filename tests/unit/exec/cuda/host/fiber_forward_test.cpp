// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/host/fiber_forward.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>

#include "faulty_warp.hpp"

namespace attune::testing {
namespace {

/// A causal problem of two tiles of rows. `bad`: a value that some rows see is infinite.
template <class E, int Width = 64>
struct problem {
  static constexpr index_t queries = Width == 64 ? 70 : 40, keys = 230, width = Width;
  double scale;
  std::optional<index_t> offset;  ///< of the queries
  std::vector<E> q, k, v;
  explicit problem(double logits_per_product = 0.125, bool bad = false) : scale(logits_per_product) {
    auto const draw = [](std::vector<E>& x, index_t rows, double seed) {
      for (index_t n = 0; n < rows * width; ++n) x.push_back(E(float(std::sin(seed + 1.7 * double(n)))));
    };
    draw(q, queries, 1);
    draw(k, keys, 2);
    draw(v, keys, 3);
    if (bad) v[std::size_t(20 * width + 5)] = E(std::numeric_limits<float>::infinity());
  }
  template <class Call>
  std::vector<E> run(Call const& call) const {
    std::vector<E> out(std::size_t(queries * width), E(std::numeric_limits<float>::quiet_NaN()));
    auto const op = attention(kernel::dot_product{.scale = scale}, mask::causal{});
    using op_type = std::remove_const_t<decltype(op)>;
    auto const in = make_inputs<op_type, tensor<E const>>(
        [&]<field F>() {
          std::vector<E> const& x = F == field::q ? q : F == field::k ? k : v;
          return tensor<E const>(x.data(), {1, 1, F == field::q ? queries : keys, width});
        },
        offset);
    outputs<op_type, E> const to{.out = tensor<E>(out.data(), {1, 1, queries, width})};
    call(op, in, to);
    return out;
  }
  std::vector<E> on_host() const {
    return run([](auto const& op, auto const& in, auto const& out) {
      forward_on_host_warps<exec_cuda::widths<Width>>(op, in, out);
    });
  }
  /// True if this schedule shows that something is wrong.
  bool shows(fault wrong, unsigned seed, std::vector<E> const& right) const {
    faulty_warp::wrong = wrong;
    bool stuck = false;
    auto const got = run([&](auto const& op, auto const& in, auto const& out) {
      try {
        forward_on_fibers<faulty_warp, exec_cuda::widths<Width>>(op, in, out, seed);
      } catch (error const&) {
        stuck = true;
      }
    });
    return stuck || std::memcmp(got.data(), right.data(), right.size() * sizeof(E)) != 0;
  }
  int schedules(fault wrong, int count, std::vector<E> const& right) const {
    int found = 0;
    for (int seed = 0; seed < count; ++seed) found += shows(wrong, unsigned(seed), right);
    return found;
  }
};
TEST_CASE("forward on fibers: the same bits in every schedule") {
  problem<bfloat16> const p;
  CHECK(p.schedules(fault::none, 200, p.on_host()) == 0);
}
TEST_CASE("forward on fibers: a negative scale, whose queries change their sign in shared memory") {
  problem<bfloat16> const p(-0.125);
  CHECK(p.schedules(fault::none, 50, p.on_host()) == 0);
}
TEST_CASE("forward on fibers: every planted fault is found in every schedule") {
  problem<bfloat16> const p;
  auto const right = p.on_host();
  for (fault f : faults) {
    INFO("fault ", int(f));
    CHECK(p.schedules(f, 20, right) == 20);
  }
}

TEST_CASE("forward of floats on fibers: the same bits in every schedule, and planted faults are found") {
  problem<float, 256> p;  // tiles of 16 keys; rows see 12 to 15 of them
  p.offset = 190;
  auto const right = p.on_host();
  CHECK(p.schedules(fault::none, 50, right) == 0);
  for (fault f : faults) {
    INFO("fault ", int(f));
    // Warps with more copies take more turns before they read: a copy that nobody waits for often lands in time.
    bool const may_land = f == fault::no_wait || f == fault::short_wait;
    CHECK(p.schedules(f, 20, right) >= (may_land ? 5 : 20));
  }
}
TEST_CASE("forward of floats on fibers: an infinite value is taken out of shared memory") {
  problem<float> const p(0.125, true);
  faulty_warp::late_writer = 5;  // it takes the value out
  auto const right = p.on_host();
  CHECK(p.schedules(fault::none, 50, right) == 0);
  CHECK(p.schedules(fault::no_second_barrier, 20, right) == 20);
  faulty_warp::late_writer = -1;
}

}  // namespace
}  // namespace attune::testing
