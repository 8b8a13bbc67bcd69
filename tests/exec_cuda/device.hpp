// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The cases on a device: memory, calls, and what CUDA reports.
#pragma once

#include <cstring>
#include <optional>

#include <attune/cuda.hpp>

#include "check.hpp"

namespace attune::cuda_check {

/// Memory of the current device; freed at the end of a case.
struct device_place {
  std::vector<void*> kept;
  ~device_place() { release(); }
  void release() {
    for (void* x : kept) static_cast<void>(cudaFree(x));
    kept.clear();
  }
  template <class T>
  T* keep(std::vector<T> const& x) {
    void* to = nullptr;
    exec_cuda::require_success(cudaMalloc(&to, x.size() * sizeof(T) + 16), "cudaMalloc");
    kept.push_back(to);
    exec_cuda::require_success(cudaMemcpy(to, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice), "a copy");
    return static_cast<T*>(to);
  }
  template <class T>
  std::vector<T> fetch(T const* from, std::size_t n) {
    std::vector<T> to(n);
    exec_cuda::require_success(cudaDeviceSynchronize(), "the kernels");
    exec_cuda::require_success(cudaMemcpy(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost), "a copy");
    return to;
  }
  template <class Widths>
  struct with {
    device_place& place;
    template <class T>
    T* keep(std::vector<T> const& x) {
      return place.keep(x);
    }
    template <class T>
    std::vector<T> fetch(T const* from, std::size_t n) {
      return place.fetch(from, n);
    }
    template <class Op, class E>
    void forward(Op const& op, inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& to) {
      attune::forward(cuda<E, Widths>{}, op, in, to);
    }
  };
};

/// One case on the device, with tiles of one width.
template <int Width, class E = bfloat16, class Make>
void on_device(char const* name, sizes const& n, Make const& make, double loose = 1, index_t poison = -1,
               std::optional<index_t> offset = std::nullopt) {
  device_place place;
  device_place::with<exec_cuda::widths<Width>> at{place};
  check<E>(at, name, n, make, loose, poison, offset);
}

/// Milliseconds of a forward call: the least of several.
template <int Width, class Op>
double milliseconds(Op const& op, index_t batch, index_t heads, index_t length, index_t width) {
  device_place place;
  shape const e{batch, heads, length, width};
  std::vector<bfloat16> x(std::size_t(e.size()));
  unsigned state = 1;
  for (auto& y : x) state = state * 1664525u + 1013904223u, y = bfloat16(float(state >> 8) * 0x1p-23f - 1.f);
  bfloat16 *const q = place.keep(x), *const k = place.keep(x), *const v = place.keep(x), *const out = place.keep(x);
  auto const in = make_inputs<Op, tensor<bfloat16 const>>([&]<field F>() {
    if constexpr (F == field::v0)
      return tensor<bfloat16 const>(q, shape{1, 1, 1, width});
    else
      return tensor<bfloat16 const>(F == field::k || F == field::gate_k ? k : F == field::v ? v : q, e);
  });
  outputs<Op, bfloat16> const to{.out = tensor<bfloat16>(out, e)};
  cuda<bfloat16, exec_cuda::widths<Width>> exec;
  exec.bytes = workspace_bytes(exec, op, in, to);
  exec.workspace = place.keep(std::vector<char>(exec.bytes));
  cudaEvent_t from, until;
  cudaEventCreate(&from), cudaEventCreate(&until);
  for (int n = 0; n < 3; ++n) forward(exec, op, in, to);
  float least = 1e9f;
  for (int n = 0; n < 10; ++n) {
    cudaEventRecord(from);
    forward(exec, op, in, to);
    cudaEventRecord(until);
    exec_cuda::require_success(cudaEventSynchronize(until), "the kernels");
    float ms = 0;
    cudaEventElapsedTime(&ms, from, until);
    least = ms < least ? ms : least;
  }
  cudaEventDestroy(from), cudaEventDestroy(until);
  return double(least);
}
template <int Width, class Op>
void time(char const* name, Op const& op, index_t batch, index_t heads, index_t length, index_t width, double share) {
  try {
    double const ms = milliseconds<Width>(op, batch, heads, length, width);
    double const flops = 4.0 * double(batch * heads) * double(length) * double(length) * double(width) * share;
    std::printf("TIME  %-34s bf16 B%d H%d L%d D%d  %.3f ms  %.0f TFLOP/s\n", name, int(batch), int(heads), int(length),
                int(width), ms, flops / ms * 1e-9);
  } catch (std::exception const& e) {
    std::printf("TIME  %-34s %s\n", name, e.what());
  }
  std::fflush(stdout);
}

}  // namespace attune::cuda_check
