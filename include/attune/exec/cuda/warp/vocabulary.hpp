// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   template <warp_vocabulary W> ... a tile, written once
//
// The functions of a warp that a tile may call. Three types have them: device_warp (warp/device.cuh) is a lane of a
// real warp; testing::host_warp has 32 lanes side by side, the layouts of PTX and a count of bank conflicts;
// testing::fiber_warp finds missing waits and barriers. The probe tests/probe/layout_probe.cu compares the first two on
// a GPU, bit by bit.
#pragma once

#include <concepts>
#include <cstdint>

#include <attune/core/storage.hpp>

namespace attune::exec_cuda {

/// A function of lanes, for the concept: nvcc does not take a lambda there.
struct function_of_lanes {
  ATTUNE_HD int operator()(int lane) const { return lane; }
};

/// A warp of 32 lanes. W::of<T> is a T of each lane: on a device the lane's own T, on the host all 32. Members:
///
/// | member | what it does |
/// |---|---|
/// | for_lanes(f), each_lane(f) | f(lane) for each lane; each_lane keeps the results. |
/// | at(x, lane) | the number of a lane; on a device a lane sees its own alone. |
/// | shfl(x, from), shfl_xor(x, mask), any(b) | the number of another lane; true if true in any lane. |
/// | pack<E>(low, high) | two floats as two E, to nearest, the first in the low half. |
/// | unpack<E>(pair, low, high) | two E as two floats, exactly. |
/// | ldmatrix4(r, base, at, transposed) | four 8 x 8 matrices; lane 8 m + r has the address of row r of matrix m. |
/// | mma<E>(d, a, b0, b1) | d += a b, a 16 x 16 and b 16 x 8 of E, d in float; a device adds towards zero. |
/// | copy16(base, to, from, inside) | issues a copy of 16 bytes to shared memory; zeros, and no read, if not inside. |
/// | commit(), wait<N>() | closes a group of copies; waits until at most N groups of this warp are under way. |
/// | sync(), sync_or(b) | waits for the warps of the block; true if b is true in any lane of it. |
/// | read16(r, base, at), read4(base, at) | 16 or 4 bytes of shared memory for each lane. |
/// | write16(base, at, r) | writes 16 bytes of shared memory for each lane. |
/// | once_more(warp) | the warp's number, computed again, so that nothing derived from it is kept in a register. |
/// | all_warps(warp, warps, f) | f(w) for the copies that a block shares; each warp runs its own, host_warp all. |
///
/// Every lane calls every member: a tile branches on what all lanes of the warp agree about. Addresses of 16 bytes are
/// multiples of 16. A copy may be read after wait, and by other warps after the next sync.
/// Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "ldmatrix".
template <class W>
concept warp_vocabulary =
    requires(typename W::shared base, typename W::template of<std::uint32_t> word,
             typename W::template of<std::uint32_t> (&words)[4],
             typename W::template of<std::uint32_t> const (&written)[4], typename W::template of<float> number,
             typename W::template of<float> (&numbers)[4], typename W::template of<int> lane,
             typename W::template of<bool> flag, typename W::template of<unsigned char const*> from) {
      W::for_lanes(function_of_lanes{});
      { W::each_lane(function_of_lanes{}) } -> std::same_as<typename W::template of<int>>;
      { W::at(number, 0) } -> std::same_as<float&>;
      { W::shfl(number, lane) } -> std::same_as<typename W::template of<float>>;
      { W::shfl_xor(number, 1) } -> std::same_as<typename W::template of<float>>;
      { W::any(flag) } -> std::same_as<bool>;
      { W::template pack<bfloat16>(number, number) } -> std::same_as<typename W::template of<std::uint32_t>>;
      { W::template pack<float16>(number, number) } -> std::same_as<typename W::template of<std::uint32_t>>;
      W::template unpack<bfloat16>(word, number, number);
      W::template unpack<float16>(word, number, number);
      W::ldmatrix4(words, base, word, true);
      W::template mma<bfloat16>(numbers, words, word, word);
      W::template mma<float16>(numbers, words, word, word);
      W::copy16(base, word, from, flag);
      W::commit();
      W::template wait<1>();
      W::sync();
      { W::sync_or(flag) } -> std::same_as<bool>;
      W::read16(words, base, word);
      W::write16(base, word, written);
      { W::read4(base, word) } -> std::same_as<typename W::template of<std::uint32_t>>;
      { W::once_more(0) } -> std::same_as<int>;
      W::all_warps(0, 1, function_of_lanes{});
    };

}  // namespace attune::exec_cuda
