// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Times of softmax with tiles of other extents.
#include "gpu_main.hpp"

namespace attune::cuda_check {

template <class C>
void time_tile(char const* name, index_t width) {
  ++cases;
  try {
    auto const op = softmax_attention();
    using Op = std::remove_const_t<decltype(op)>;
    device_place place;
    shape const e{4, 16, 4096, width};
    std::vector<bfloat16> x(std::size_t(e.size()));
    unsigned state = 1;
    for (auto& y : x) state = state * 1664525u + 1013904223u, y = bfloat16(float(state >> 8) * 0x1p-23f - 1.f);
    bfloat16 *const q = place.keep(x), *const k = place.keep(x), *const v = place.keep(x), *const out = place.keep(x);
    inputs<Op, tensor<bfloat16 const>> const in{
        .q = tensor<bfloat16 const>(q, e), .k = tensor<bfloat16 const>(k, e), .v = tensor<bfloat16 const>(v, e)};
    outputs<Op, bfloat16> const to{.out = tensor<bfloat16>(out, e)};
    auto const p = detail::checked_problem("forward", op, in, e, memory_kind::device);
    exec_cuda::forward_runner<exec_cuda::stream_runner> runner{{nullptr}};
    exec_cuda::arena count;
    exec_cuda::forward_run<decltype(runner), Op, bfloat16, C>(runner, count, op, in, to, p)();
    auto* const room = reinterpret_cast<unsigned char*>(place.keep(std::vector<char>(count.used + 256)));
    double const ms = median_milliseconds([&] {
      exec_cuda::arena memory{room};
      exec_cuda::forward_run<decltype(runner), Op, bfloat16, C>(runner, memory, op, in, to, p)();
    });
    std::printf("TILE  %-24s D%d  %.3f ms  %.0f TFLOP/s\n", name, int(width), ms,
                4.0 * 64 * 4096.0 * 4096.0 * double(width) / ms * 1e-9);
  } catch (std::exception const& e) {
    ++failures;
    std::printf("FAIL  TILE  %-24s %s\n", name, e.what());
  }
  std::fflush(stdout);
}
void run() {
  time_tile<exec_cuda::tile_config<128, 32, 2, 4>>("32 keys, 2 x 16, 4 warps", 128);
  time_tile<exec_cuda::tile_config<128, 64, 1, 8>>("64 keys, 1 x 16, 8 warps", 128);
  time_tile<exec_cuda::tile_config<128, 64, 1, 4>>("64 keys, 1 x 16, 4 warps", 128);
  time_tile<exec_cuda::tile_config<64, 128, 1, 4>>("128 keys, 1 x 16, 4 warps", 64);
  time_tile<exec_cuda::tile_config<64, 64, 1, 4>>("64 keys, 1 x 16, 4 warps", 64);
}

}  // namespace attune::cuda_check
