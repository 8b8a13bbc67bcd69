// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The cases on a device: memory, calls, and what CUDA reports.
#pragma once

#include <algorithm>
#include <cstdlib>
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

inline bool few = false;  ///< leaves out cases with more than 4,000,000 pairs

/// One case on the device, with tiles of one width. Ends the program if the device no longer works.
template <int Width, class E = bfloat16, class Make>
void on_device(char const* name, sizes const& n, Make const& make, double loose = 1, index_t poison = -1,
               std::optional<index_t> offset = std::nullopt) {
  if (few && n.batch * n.heads * n.queries * n.keys > 4000000) return;
  device_place place;
  device_place::with<exec_cuda::widths<Width>> at{place};
  check<E>(at, name, n, make, loose, poison, offset);
  if (cudaError_t const e = cudaDeviceSynchronize(); e != cudaSuccess) {
    std::printf("STOP  after %s: %s. The cases that follow have not run\n", name, cudaGetErrorString(e));
    std::exit(1);
  }
}

/// Milliseconds of run(): the median of 20, as scripts/lib/torch_times.py measures PyTorch.
template <class Run>
double median_milliseconds(Run const& run) {
  cudaEvent_t from, until;
  cudaEventCreate(&from), cudaEventCreate(&until);
  for (int n = 0; n < 3; ++n) run();
  std::vector<float> times(20);
  for (float& ms : times) {
    cudaEventRecord(from);
    run();
    cudaEventRecord(until);
    exec_cuda::require_success(cudaEventSynchronize(until), "the kernels");
    cudaEventElapsedTime(&ms, from, until);
  }
  cudaEventDestroy(from), cudaEventDestroy(until);
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return double(times[10]);
}

/// Milliseconds of a forward call.
template <int Width, class E, class Op>
double milliseconds(Op const& op, index_t batch, index_t heads, index_t length, index_t width) {
  device_place place;
  shape const e{batch, heads, length, width};
  std::vector<E> x(std::size_t(e.size()));
  unsigned state = 1;
  for (auto& y : x) state = state * 1664525u + 1013904223u, y = E(float(state >> 8) * 0x1p-23f - 1.f);
  E *const q = place.keep(x), *const k = place.keep(x), *const v = place.keep(x), *const out = place.keep(x);
  auto const in = make_inputs<Op, tensor<E const>>([&]<field F>() {
    if constexpr (F == field::v0)
      return tensor<E const>(q, shape{1, 1, 1, width});
    else
      return tensor<E const>(F == field::k || F == field::gate_k ? k : F == field::v ? v : q, e);
  });
  outputs<Op, E> const to{.out = tensor<E>(out, e)};
  cuda<E, exec_cuda::widths<Width>> exec;
  exec.bytes = workspace_bytes(exec, op, in, to);
  exec.workspace = place.keep(std::vector<char>(exec.bytes));
  return median_milliseconds([&] { forward(exec, op, in, to); });
}
template <int Width, class E = bfloat16, class Op>
void time(char const* name, Op const& op, index_t batch, index_t heads, index_t length, index_t width, double share) {
  ++cases;
  try {
    double const ms = milliseconds<Width, E>(op, batch, heads, length, width);
    double const flops = 4.0 * double(batch * heads) * double(length) * double(length) * double(width) * share;
    std::printf("TIME  %-34s %s B%d H%d L%d D%d  %.3f ms  %.0f TFLOP/s\n", name,
                std::is_same_v<E, float> ? "fp32" : "bf16", int(batch), int(heads), int(length), int(width), ms,
                flops / ms * 1e-9);
  } catch (std::exception const& e) {
    ++failures;
    std::printf("FAIL  TIME  %-34s %s\n", name, e.what());
  }
  std::fflush(stdout);
}

}  // namespace attune::cuda_check
