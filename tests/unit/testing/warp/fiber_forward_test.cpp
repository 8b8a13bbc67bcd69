// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
#include <attune/testing/warp/fiber_forward.hpp>

namespace attune::testing {
namespace {

/// What a warp does wrong, or leaves out.
enum class fault {
  none,
  no_wait,
  short_wait,
  no_barrier,
  no_barrier_in_one_warp,
  no_commit,
  no_share,
  lost_copy,
  swapped_copy,
  zeros_as_data,
};

/// A warp that does what `wrong` says. One type for all faults: the tile is compiled once.
struct faulty_warp : fiber_warp {
  static inline fault wrong = fault::none;
  static bool does(fault f) { return wrong == f; }
  static bool in(int warp) { return fiber_block::here().current() == warp; }
  template <int N>
  static void wait() {
    if (does(fault::no_wait)) return;
    if (does(fault::short_wait))
      fiber_warp::wait<N + 1>();
    else
      fiber_warp::wait<N>();
  }
  static void sync() {
    if (!does(fault::no_barrier) && !(does(fault::no_barrier_in_one_warp) && in(1))) fiber_warp::sync();
  }
  static void commit() {
    if (!does(fault::no_commit) || !in(1)) fiber_warp::commit();
  }
  static void copy16(shared base, lanes<std::uint32_t> to, lanes<unsigned char const*> const& from,
                     lanes<bool> inside) {
    if (does(fault::lost_copy) && in(2)) inside.v[9] = false;
    if (does(fault::swapped_copy) && in(2)) std::swap(to.v[4], to.v[5]);
    if (does(fault::zeros_as_data) && fiber_block::here().switches() % 2 == 0)
      inside = each_lane([](int) { return false; });
    fiber_warp::copy16(base, to, from, inside);
  }
  template <class F>
  static void all_warps(int warp, int warps, F const& f) {
    if (!does(fault::no_share) || warp != 3) fiber_warp::all_warps(warp, warps, f);
  }
};

struct problem {
  static constexpr index_t queries = 70, keys = 230, width = 64;
  double scale;
  std::vector<bfloat16> q, k, v;
  explicit problem(double logits_per_product = 0.125) : scale(logits_per_product) {
    auto const draw = [](std::vector<bfloat16>& x, index_t rows, double seed) {
      for (index_t n = 0; n < rows * width; ++n) x.push_back(bfloat16(float(std::sin(seed + 1.7 * double(n)))));
    };
    draw(q, queries, 1);
    draw(k, keys, 2);
    draw(v, keys, 3);
  }
  template <class Call>
  std::vector<bfloat16> run(Call const& call) const {
    std::vector<bfloat16> out(std::size_t(queries * width), bfloat16(std::numeric_limits<float>::quiet_NaN()));
    auto const op = attention(kernel::dot_product{.scale = scale}, mask::causal{});
    using op_type = std::remove_const_t<decltype(op)>;
    auto const in = make_inputs<op_type, tensor<bfloat16 const>>([&]<field F>() {
      std::vector<bfloat16> const& x = F == field::q ? q : F == field::k ? k : v;
      return tensor<bfloat16 const>(x.data(), {1, 1, F == field::q ? queries : keys, width});
    });
    outputs<op_type, bfloat16> const to{.out = tensor<bfloat16>(out.data(), {1, 1, queries, width})};
    call(op, in, to);
    return out;
  }
  std::vector<bfloat16> on_host() const {
    return run([](auto const& op, auto const& in, auto const& out) {
      forward_on_host_warps<exec_cuda::widths<64>>(op, in, out);
    });
  }
  /// True if this schedule shows that something is wrong.
  bool shows(fault wrong, unsigned seed, std::vector<bfloat16> const& right) const {
    faulty_warp::wrong = wrong;
    bool stuck = false;
    auto const got = run([&](auto const& op, auto const& in, auto const& out) {
      try {
        forward_on_fibers<faulty_warp, exec_cuda::widths<64>>(op, in, out, seed);
      } catch (error const&) {
        stuck = true;
      }
    });
    return stuck || std::memcmp(got.data(), right.data(), right.size() * sizeof(bfloat16)) != 0;
  }
  int schedules(fault wrong, int count, std::vector<bfloat16> const& right) const {
    int found = 0;
    for (int seed = 0; seed < count; ++seed) found += shows(wrong, unsigned(seed), right);
    return found;
  }
};

TEST_CASE("forward on fibers: the same bits in every schedule") {
  problem const p;
  CHECK(p.schedules(fault::none, 200, p.on_host()) == 0);
}
TEST_CASE("forward on fibers: a negative scale, whose queries change their sign in shared memory") {
  problem const p(-0.125);
  CHECK(p.schedules(fault::none, 50, p.on_host()) == 0);
}
TEST_CASE("forward on fibers: every planted fault is found in every schedule") {
  problem const p;
  auto const right = p.on_host();
  for (fault f : {fault::no_wait, fault::short_wait, fault::no_barrier, fault::no_barrier_in_one_warp, fault::no_commit,
                  fault::no_share, fault::lost_copy, fault::swapped_copy, fault::zeros_as_data}) {
    INFO("fault ", int(f));
    CHECK(p.schedules(f, 20, right) == 20);
  }
}

}  // namespace
}  // namespace attune::testing
