// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cmath>
#include <cstring>
#include <limits>
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

template <fault Wrong>
struct faulty_warp : fiber_warp {
  static int warp() { return fiber_block::here().current(); }
  template <int N>
  static void wait() {
    if (Wrong == fault::no_wait) return;
    fiber_warp::wait<N + (Wrong == fault::short_wait)>();
  }
  static void sync() {
    if (Wrong == fault::no_barrier || (Wrong == fault::no_barrier_in_one_warp && warp() == 1)) return;
    fiber_warp::sync();
  }
  static void commit() {
    if (Wrong != fault::no_commit || warp() != 1) fiber_warp::commit();
  }
  static void copy16(shared base, lanes<std::uint32_t> to, lanes<unsigned char const*> const& from, lanes<bool> inside) {
    if (Wrong == fault::lost_copy && warp() == 2) inside.v[9] = false;
    if (Wrong == fault::swapped_copy && warp() == 2) std::swap(to.v[4], to.v[5]);
    if (Wrong == fault::zeros_as_data)
      for (bool& x : inside.v) x = x && fiber_block::here().switches() % 2 == 0;
    fiber_warp::copy16(base, to, from, inside);
  }
  template <class F>
  static void all_warps(int w, int warps, F const& f) {
    if (Wrong != fault::no_share || w != 3) fiber_warp::all_warps(w, warps, f);
  }
};

struct problem {
  static constexpr index_t queries = 150, keys = 330, width = 64;
  std::vector<bfloat16> q, k, v;
  problem() {
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
    auto const op = softmax_attention(mask::causal{});
    using op_type = std::remove_const_t<decltype(op)>;
    shape const of_queries{1, 1, queries, width}, of_keys{1, 1, keys, width};
    inputs<op_type, tensor<bfloat16 const>> in;
    in.q = {q.data(), of_queries};
    in.k = {k.data(), of_keys};
    in.v = {v.data(), of_keys};
    outputs<op_type, bfloat16> to;
    to.out = {out.data(), of_queries};
    call(op, in, to);
    return out;
  }
  std::vector<bfloat16> on_host() const {
    return run([](auto const& op, auto const& in, auto const& out) { forward_on_host_warps<exec_cuda::widths<64>>(op, in, out); });
  }
  /// True if this schedule shows that something is wrong.
  template <fault Wrong>
  bool shows(unsigned seed, std::vector<bfloat16> const& right) const {
    bool stuck = false;
    auto const got = run([&](auto const& op, auto const& in, auto const& out) {
      try {
        forward_on_fibers<faulty_warp<Wrong>, exec_cuda::widths<64>>(op, in, out, seed);
      } catch (error const&) {
        stuck = true;
      }
    });
    return stuck || std::memcmp(got.data(), right.data(), right.size() * sizeof(bfloat16)) != 0;
  }
  template <fault Wrong>
  int schedules(int count, std::vector<bfloat16> const& right) const {
    int found = 0;
    for (int seed = 0; seed < count; ++seed) found += shows<Wrong>(unsigned(seed), right);
    return found;
  }
};

TEST_CASE("forward on fibers: the same bits in every schedule") {
  problem const p;
  CHECK(p.schedules<fault::none>(200, p.on_host()) == 0);
}
TEST_CASE("forward on fibers: every planted fault is found in every schedule") {
  problem const p;
  auto const right = p.on_host();
  CHECK(p.schedules<fault::no_wait>(20, right) == 20);
  CHECK(p.schedules<fault::short_wait>(20, right) == 20);
  CHECK(p.schedules<fault::no_barrier>(20, right) == 20);
  CHECK(p.schedules<fault::no_barrier_in_one_warp>(20, right) == 20);
  CHECK(p.schedules<fault::no_commit>(20, right) == 20);
  CHECK(p.schedules<fault::no_share>(20, right) == 20);
  CHECK(p.schedules<fault::lost_copy>(20, right) == 20);
  CHECK(p.schedules<fault::swapped_copy>(20, right) == 20);
  CHECK(p.schedules<fault::zeros_as_data>(20, right) == 20);
}

}  // namespace
}  // namespace attune::testing
