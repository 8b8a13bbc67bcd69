// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A call recorded in a CUDA graph. With memory of our own it allocates nothing; it never waits for the device.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include <attune/cuda.hpp>

using namespace attune;

void check(cudaError_t e) {
  if (e != cudaSuccess) std::printf("CUDA: %s\n", cudaGetErrorString(e)), std::exit(1);
}
std::vector<float> copied(float const* from, std::size_t n) {
  std::vector<float> to(n);
  check(cudaMemcpy(to.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost));
  return to;
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::puts("no CUDA device: skipped"), 0;
  shape const s{1, 2, 500, 64};
  std::size_t const n = std::size_t(s.size());
  std::vector<float> numbers(n);
  for (std::size_t x = 0; x < n; ++x) numbers[x] = float(x * 7919 % 1000) / 500 - 1;
  float *x = nullptr, *y = nullptr;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&y, n * sizeof(float)));
  check(cudaMemcpy(x, numbers.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  auto const op = softmax_attention(mask::causal{});
  using op_type = std::remove_const_t<decltype(op)>;
  tensor<float const> const in(x, s);
  inputs<op_type, tensor<float const>> const of{.q = in, .k = in, .v = in};
  outputs<op_type, float> const to{.out = tensor<float>(y, s)};

  // [snippet: graph]
  cuda<float, exec_cuda::widths<64>> exec{stream};
  exec.bytes = workspace_bytes(exec, op, of, to);
  check(cudaMalloc(&exec.workspace, exec.bytes));
  forward(exec, op, of, to);  // once before: CUDA loads a kernel at its first call
  check(cudaStreamSynchronize(stream));
  auto const right = copied(y, n);

  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  forward(exec, op, of, to);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&ready, graph, 0));
  check(cudaMemset(y, 0xff, n * sizeof(float)));
  check(cudaGraphLaunch(ready, stream));
  // [/snippet]
  check(cudaStreamSynchronize(stream));
  bool const same = std::memcmp(copied(y, n).data(), right.data(), n * sizeof(float)) == 0;
  std::printf("the graph computes %s\n", same ? "the same bits" : "something else");
  return same ? 0 : 1;
}
