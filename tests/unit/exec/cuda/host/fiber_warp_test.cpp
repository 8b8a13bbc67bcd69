// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstring>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include <attune/exec/cuda/host/fiber_warp.hpp>
#include <attune/exec/cuda/warp/vocabulary.hpp>

namespace attune::testing {
namespace {

static_assert(exec_cuda::warp_vocabulary<host_warp> && exec_cuda::warp_vocabulary<fiber_warp>);

/// What is wrong with a program of this file.
enum class fault {
  none,
  // staged: tiles by cp.async in two slots
  no_barrier,
  short_wait,
  early_copy,
  barrier_before_wait,
  no_commit,
  // piped: a warp brings tiles by bulk copies, others multiply them
  no_wait_for_empty,
  wrong_parity,
  early_release,
  small_promise,
  missing_arrival,
};

constexpr int warps = 4, tiles = 24, rows = 16, row_bytes = 32, tile_bytes = rows * row_bytes * warps;

/// Tiles of 64 x 16 numbers in global memory, and what 4 warps make of them: a warp sums the products of its 16 rows
/// with those of the next two.
struct work {
  std::vector<bfloat16> from = std::vector<bfloat16>(tiles * tile_bytes / 2);
  std::vector<float> out = std::vector<float>(warps * 128 * 2, 0.f);

  work() {
    for (std::size_t n = 0; n < from.size(); ++n) from[n] = bfloat16(float(int(n * 7919 % 37)) / 8 - 2);
  }
  unsigned char const* tile(int t) const {
    return reinterpret_cast<unsigned char const*>(from.data()) + t * tile_bytes;
  }
};

template <class W>
void multiply(work& to, typename W::shared slot, int warp) {
  lanes<std::uint32_t> const own =
      W::each_lane([&](int l) { return std::uint32_t((warp * rows + l % 16) * row_bytes + l / 16 * 16); });
  lanes<std::uint32_t> a[4], b[4];
  W::ldmatrix4(a, slot, own, false);
  for (int n = 1; n < 3; ++n) {
    int const w = (warp + n) % warps;
    lanes<std::uint32_t> const other = W::each_lane(
        [&](int l) { return std::uint32_t((w * rows + l % 8 + l / 16 * 8) * row_bytes + l / 8 % 2 * 16); });
    W::ldmatrix4(b, slot, other, false);
    for (int half = 0; half < 2; ++half) {
      lanes<float> d[4];
      float* const sum = to.out.data() + (warp * 2 + half) * 128;
      for (int e = 0; e < 4; ++e)
        for (int l = 0; l < 32; ++l) d[e].v[l] = sum[4 * l + e];
      W::template mma<bfloat16>(d, a, b[2 * half], b[2 * half + 1]);
      for (int e = 0; e < 4; ++e)
        for (int l = 0; l < 32; ++l) sum[4 * l + e] = d[e].v[l];
    }
  }
}

template <class W>
void fetch(work const& from, typename W::shared slot, int t, int warp) {
  W::all_warps(warp, warps, [&](int w) {
    lanes<std::uint32_t> const to = W::each_lane([&](int l) { return std::uint32_t((w * 32 + l) * 16); });
    lanes<unsigned char const*> const source = W::each_lane([&](int l) { return from.tile(t) + (w * 32 + l) * 16; });
    W::copy16(slot, to, source, W::each_lane([](int) { return true; }));
  });
}

/// The loop of a forward tile: tile t + 1 is on its way while tile t is multiplied.
template <class W>
void staged(work& x, typename W::shared memory, int warp, fault wrong) {
  auto const slot = [&](int t) { return memory + t % 2 * tile_bytes; };
  auto const next = [&](int t) {
    if (t + 1 < tiles) fetch<W>(x, slot(t + 1), t + 1, warp);
    if (wrong != fault::no_commit) W::commit();
  };
  fetch<W>(x, slot(0), 0, warp);
  W::commit();
  for (int t = 0; t < tiles; ++t) {
    if (wrong == fault::early_copy) next(t), W::template wait<1>(), W::sync();
    if (wrong == fault::no_barrier) W::template wait<0>(), next(t);
    if (wrong == fault::short_wait) W::template wait<1>(), W::sync(), next(t);
    if (wrong == fault::barrier_before_wait) W::sync(), W::template wait<0>(), next(t);
    if (wrong == fault::none || wrong == fault::no_commit) W::template wait<0>(), W::sync(), next(t);
    multiply<W>(x, slot(t), warp);
  }
}

/// Warp 4 brings tiles, the others give slots back.
void piped(work& x, unsigned char* memory, int warp, fault wrong) {
  using W = fiber_warp;
  unsigned char* const barriers = memory + 2 * tile_bytes;
  auto const slot = [&](int t) { return memory + t % 2 * tile_bytes; };
  auto const full = [&](int t) { return barriers + t % 2 * 8; };
  auto const empty = [&](int t) { return barriers + 16 + t % 2 * 8; };
  if (warp == warps)
    for (int s = 0; s < 2; ++s) W::make_barrier(full(s), 1), W::make_barrier(empty(s), warps);
  W::sync();
  for (int t = 0; t < tiles; ++t) {
    int const round = t / 2;
    if (warp == warps) {
      if (wrong != fault::no_wait_for_empty) W::wait_barrier(empty(t), (round & 1) ^ 1);
      W::arrive_expecting(full(t), wrong == fault::small_promise ? tile_bytes / 2 : tile_bytes);
      for (int half = 0; half < 2; ++half)
        W::copy_bulk(slot(t) + half * (tile_bytes / 2), x.tile(t) + half * (tile_bytes / 2), tile_bytes / 2, full(t));
    } else {
      W::wait_barrier(full(t), (wrong == fault::wrong_parity ? round + 1 : round) & 1);
      if (wrong == fault::early_release) W::arrive(empty(t));
      multiply<W>(x, slot(t), warp);
      if (wrong != fault::early_release && !(wrong == fault::missing_arrival && t == 1 && warp == 2))
        W::arrive(empty(t));
    }
  }
}

std::vector<float> serial() {
  work x;
  std::vector<unsigned char> memory(2 * tile_bytes);
  // host_warp runs one warp to its end before the next, and copies land at once
  for (int w = 0; w < warps; ++w) staged<host_warp>(x, memory.data(), w, fault::none);
  return x.out;
}
/// True if this schedule shows that something is wrong.
bool found(fault wrong, unsigned seed, std::vector<float> const& right) {
  work x;
  fiber_block block(2 * tile_bytes + 64);
  bool const by_pipe = wrong >= fault::no_wait_for_empty;
  block.run(warps + by_pipe, seed, [&](int w) {
    if (by_pipe)
      piped(x, block.shared(), w, wrong);
    else
      staged<fiber_warp>(x, block.shared(), w, wrong);
  });
  return !block.stuck().empty() || std::memcmp(x.out.data(), right.data(), right.size() * sizeof(float)) != 0;
}
bool piped_found(unsigned seed, std::vector<float> const& right) {
  work x;
  fiber_block block(2 * tile_bytes + 64);
  block.run(warps + 1, seed, [&](int w) { piped(x, block.shared(), w, fault::none); });
  return !block.stuck().empty() || std::memcmp(x.out.data(), right.data(), right.size() * sizeof(float)) != 0;
}

TEST_CASE("fiber_warp: a correct pipeline has the same bits in every schedule") {
  auto const right = serial();
  int wrong = 0;
  for (unsigned seed = 0; seed < 200; ++seed) wrong += found(fault::none, seed, right);
  CHECK(wrong == 0);
  for (unsigned seed = 0; seed < 200; ++seed) wrong += piped_found(seed, right);
  CHECK(wrong == 0);
}

TEST_CASE("fiber_warp: every planted fault is found in every schedule") {
  auto const right = serial();
  for (fault f : {fault::no_barrier, fault::short_wait, fault::early_copy, fault::barrier_before_wait, fault::no_commit,
                  fault::no_wait_for_empty, fault::wrong_parity, fault::early_release, fault::small_promise,
                  fault::missing_arrival}) {
    int count = 0;
    for (unsigned seed = 0; seed < 20; ++seed) count += found(f, seed, right);
    INFO("fault ", int(f));
    CHECK(count == 20);
  }
}

TEST_CASE("fiber_block: barriers, votes, copies that are late, blocks that are stuck") {
  fiber_block block(64);
  int together = 0;
  for (unsigned seed = 0; seed < 20; ++seed)
    block.run(3, seed, [&](int w) {
      bool const one = fiber_warp::sync_or(fiber_warp::each_lane([&](int l) { return w == 1 && l == 7; }));
      bool const none = fiber_warp::sync_or(fiber_warp::each_lane([](int) { return false; }));
      together += one && !none;
    });
  CHECK(together == 60);
  CHECK(block.stuck().empty());

  block.run(2, 1, [](int w) {
    if (w == 0) fiber_warp::sync();
  });
  CHECK(block.stuck() == "a warp ended, and the others wait at a barrier of the block");
  block.run(1, 1, [&](int) {
    fiber_warp::make_barrier(block.shared(), 1);
    fiber_warp::wait_barrier(block.shared(), 0);
  });
  CHECK(block.stuck() == "every warp waits for a barrier that nobody opens");

  alignas(16) unsigned char const data[16] = {1, 2, 3};
  bool poisoned = false, landed = false;
  block.run(1, 1, [&](int) {
    auto const at = fiber_warp::each_lane([](int l) { return std::uint32_t(16 * (l % 2)); });
    auto const from = fiber_warp::each_lane([&](int) { return static_cast<unsigned char const*>(data); });
    fiber_warp::copy16(block.shared(), at, from, fiber_warp::each_lane([](int l) { return l % 2 == 0; }));
    poisoned = block.shared()[0] == 0xff && block.shared()[16] == 0xff;
    fiber_warp::commit();
    fiber_warp::wait<0>();
    landed = block.shared()[0] == 1 && block.shared()[1] == 2 && block.shared()[16] == 0;
  });
  CHECK(poisoned);
  CHECK(landed);

  CHECK_THROWS_AS(block.run(0, 1, [](int) {}), error);
  CHECK_THROWS_AS(fiber_warp::sync(), error);
  CHECK_THROWS_AS(block.run(2, 1, [](int) { throw std::runtime_error("of a warp"); }), std::runtime_error);
  CHECK_THROWS_AS(block.run(1, 1, [&](int) { fiber_warp::arrive(block.shared()); }), error);
}

}  // namespace
}  // namespace attune::testing
