// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A warp on a fiber that does one thing wrong, for tests that find it.
#pragma once

#include <utility>

#include <attune/exec/cuda/host/fiber_warp.hpp>

namespace attune::testing {

/// What a warp does wrong, or leaves out.
enum class fault {
  none,
  no_wait,
  short_wait,
  no_barrier,
  no_barrier_in_one_warp,
  no_second_barrier,
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
  static inline int late_writer = -1;  ///< a warp that others overtake before it writes
  static void write16(shared base, lanes<std::uint32_t> const& at, lanes<std::uint32_t> const (&r)[4]) {
    for (int n = 0; n < 2000 && in(late_writer); ++n) fiber_block::here().maybe_yield();
    fiber_warp::write16(base, at, r);
  }
  static bool& waited() {  ///< since the last barrier
    static bool of_warps[16];
    return of_warps[fiber_block::here().current()];
  }
  template <int N>
  static void wait() {
    waited() = true;
    if (does(fault::no_wait)) return;
    if (does(fault::short_wait))
      fiber_warp::wait<N + 1>();
    else
      fiber_warp::wait<N>();
  }
  static void sync() {
    bool const second = !std::exchange(waited(), false);
    if (second && does(fault::no_second_barrier)) return;
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

inline constexpr fault faults[] = {
    fault::no_wait,  fault::short_wait, fault::no_barrier,   fault::no_barrier_in_one_warp, fault::no_commit,
    fault::no_share, fault::lost_copy,  fault::swapped_copy, fault::zeros_as_data};

}  // namespace attune::testing
