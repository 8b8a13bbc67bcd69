// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The warp vocabulary on fibers finds mistakes that host_warp cannot see. A barrier that is missing, a wait for the
// wrong group, a place that is overwritten while another warp reads it: the result differs, or is NaN, or the block
// gets stuck.
#pragma once

#include <attune/exec/cuda/host/fiber_block.hpp>
#include <attune/exec/cuda/host/host_warp.hpp>

namespace attune::testing {

/// A warp of the fiber_block that runs on this thread. Arithmetic and layouts are the same as in host_warp.
struct fiber_warp : host_warp {
  /// Issues 32 copies of 16 bytes; zeros where not `inside`.
  static void copy16(shared base, lanes<std::uint32_t> const& to, lanes<unsigned char const*> const& from,
                     lanes<bool> const& inside) {
    for (int l = 0; l < 32; ++l) fiber_block::here().copy(base + to.v[l], inside.v[l] ? from.v[l] : nullptr);
    fiber_block::here().maybe_yield();
  }
  /// Closes the group of copies.
  static void commit() { fiber_block::here().commit(); }
  /// Waits until at most N groups of this warp are under way.
  template <int N>
  static void wait() {
    fiber_block::here().wait(N);
  }
  /// Waits for all warps of the block.
  static void sync() { fiber_block::here().sync(false); }
  /// The same; true if x is true in any lane of the block.
  static bool sync_or(lanes<bool> const& x) { return fiber_block::here().sync(any(x)); }
  /// See host_warp.
  static void ldmatrix4(lanes<std::uint32_t> (&r)[4], shared base, lanes<std::uint32_t> const& at, bool transposed) {
    fiber_block::here().maybe_yield();
    host_warp::ldmatrix4(r, base, at, transposed);
  }
  /// See host_warp.
  static void read16(lanes<std::uint32_t> (&r)[4], shared base, lanes<std::uint32_t> const& at) {
    fiber_block::here().maybe_yield();
    host_warp::read16(r, base, at);
  }
  /// See host_warp.
  static void write16(shared base, lanes<std::uint32_t> const& at, lanes<std::uint32_t> const (&r)[4]) {
    fiber_block::here().maybe_yield();
    host_warp::write16(base, at, r);
  }
  /// See host_warp.
  static lanes<std::uint32_t> read4(shared base, lanes<std::uint32_t> const& at) {
    fiber_block::here().maybe_yield();
    return host_warp::read4(base, at);
  }
  /// Each warp runs its own share.
  template <class F>
  static void all_warps(int warp, int, F const& f) {
    f(warp);
  }

  // Barriers of transactions, as device_warpgroup has them. One call counts for the warp.

  /// A barrier of 8 bytes in shared memory that opens when `arrivals` have come and all expected bytes are there.
  static void make_barrier(shared at, int arrivals) { fiber_block::here().make_barrier(at, arrivals); }
  /// Arrives.
  static void arrive(shared at) { fiber_block::here().arrive(at, 0); }
  /// Arrives, and promises `bytes` of bulk copies.
  static void arrive_expecting(shared at, int bytes) { fiber_block::here().arrive(at, bytes); }
  /// Waits for the end of the phase that has this parity.
  static void wait_barrier(shared at, int parity) { fiber_block::here().wait_barrier(at, parity); }
  /// Copies `bytes`; the barrier counts them when they are there.
  static void copy_bulk(shared to, void const* from, int bytes, shared barrier) {
    fiber_block::here().copy_bulk(to, from, std::size_t(bytes), barrier);
  }
};

}  // namespace attune::testing
