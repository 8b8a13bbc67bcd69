// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Tensors of more than 2^31 elements. Numbers follow from their place, so the host computes the rows that it looks at.
#include "gpu_main.hpp"

namespace attune::cuda_check {

constexpr index_t batch = 3, heads = 11, length = index_t(1) << 20, width = 64, reach = 40;

/// Multiples of 2^-7 in [-1, 1): bfloat16 has them exactly.
ATTUNE_HD inline float number(index_t n, unsigned salt) {
  std::uint64_t x = (std::uint64_t(n) + 1) * 0x9e3779b97f4a7c15u + salt;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  return float(int(x >> 56) - 128) * 0x1p-7f;
}
__global__ void fill(bfloat16* to, index_t size, unsigned salt) {
  for (index_t n = index_t(blockIdx.x) * blockDim.x + threadIdx.x; n < size; n += index_t(gridDim.x) * blockDim.x)
    to[n] = bfloat16(number(n, salt));
}
/// Frees what it holds.
struct tensors {
  bfloat16* at[4] = {};
  tensors() {
    for (unsigned n = 0; n < 4; ++n) {
      index_t const size = batch * heads * length * width;
      exec_cuda::require_success(cudaMalloc(&at[n], std::size_t(size) * sizeof(bfloat16)), "cudaMalloc");
      fill<<<4096, 256>>>(at[n], size, n);
      exec_cuda::require_success(cudaGetLastError(), "a launch");
    }
  }
  ~tensors() {
    for (bfloat16* x : at) static_cast<void>(cudaFree(x));
  }
  tensors(tensors const&) = delete;
};

/// The largest error of a row, as a share of its bound.
double share_of_bound(bfloat16 const* out, index_t row) {
  index_t const i = row % length, first = i < reach ? 0 : i - reach + 1, head = row - i;
  double weights = 0, sum[width] = {}, absolute[width] = {};
  for (index_t j = first; j <= i; ++j) {
    double s = 0;
    for (index_t d = 0; d < width; ++d) s += double(number(row * width + d, 0)) * number((head + j) * width + d, 1);
    double const w = std::exp(s / 8);
    weights += w;
    for (index_t d = 0; d < width; ++d) {
      double const v = number((head + j) * width + d, 2);
      sum[d] += w * v, absolute[d] += w * std::fabs(v);
    }
  }
  double worst = 0;
  for (index_t d = 0; d < width; ++d) {
    double const bound = 2.2 * 0x1p-8 * absolute[d] / weights + 1e-6;
    double const share = std::fabs(double(float(out[d])) - sum[d] / weights) / bound;
    worst = share <= worst ? worst : share;  // NaN is the worst
  }
  return worst;
}

void run() {
  ++cases;
  try {
    std::size_t left = 0, all = 0;
    exec_cuda::require_success(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
    if (left < std::size_t(26) << 30) {
      std::printf("large tensors take 26 GiB, the device has %zu\n", left >> 30);
      std::exit(77);  // left out
    }
    tensors x;
    auto const op = softmax_attention(mask::causal_window{reach});
    using Op = std::remove_const_t<decltype(op)>;
    shape const e{batch, heads, length, width};
    auto const in = [&](int n) { return tensor<bfloat16 const>(x.at[n], e); };
    forward(cuda<bfloat16, exec_cuda::widths<64>>{}, op,
            inputs<Op, tensor<bfloat16 const>>{.q = in(0), .k = in(1), .v = in(2)},
            outputs<Op, bfloat16>{.out = tensor<bfloat16>(x.at[3], e)});
    exec_cuda::require_success(cudaDeviceSynchronize(), "the kernels");
    double worst = 0;
    index_t const rows = batch * heads * length, step = rows / 997;
    for (index_t n = 0; n <= 997; ++n) {
      index_t const row = n * step < rows ? n * step : rows - 1;
      bfloat16 out[width];
      exec_cuda::require_success(cudaMemcpy(out, x.at[3] + row * width, sizeof out, cudaMemcpyDeviceToHost), "a copy");
      double const share = share_of_bound(out, row);
      worst = share <= worst ? worst : share;
    }
    bool const pass = worst <= 1;
    failures += pass ? 0 : 1;
    std::printf("%s  %-34s %lld elements of q  share of bound: %.2f\n", pass ? "PASS" : "FAIL", "window, large tensors",
                static_cast<long long>(e.size()), worst);
  } catch (std::exception const& e) {
    ++failures;
    std::printf("FAIL  window, large tensors  %s\n", e.what());
  }
}

}  // namespace attune::cuda_check
