// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(cuda{stream}, op, {.q = Q, .k = K, .v = V}, {.out = O})      cuda<float16>{stream}, cuda<float>{stream}
//
// Tensor cores of a CUDA device (sm_80 and later) from the same policies. For nvcc.
#pragma once

#include <optional>
#include <string>

#include <cuda_runtime_api.h>

#include <attune/calls/forward.hpp>
#include <attune/calls/gradients.hpp>
#include <attune/core/device_program.hpp>
#include <attune/exec/cuda/run.hpp>
#include <attune/exec/cuda/tile/forward_tile.hpp>
#include <attune/exec/cuda/warp/device.cuh>

namespace attune {

template <class T>
struct reference;

/// Fused forward on tensor cores. E is the type of the tensors: bfloat16, float16, or float; sums are float.
/// Floats are split into two fp16 each, products into three (exec/cuda/split.hpp). Their bound:
/// certify::precision::split_products().
/// `Widths`: tiles are compiled for each, so fewer compile faster. Blocks of sm_86, sm_89 and sm_120 have 99 KiB of
/// shared memory: tiles are smaller where nvcc compiles for these alone, or with exec_cuda::small_widths.
/// Views, parameters, tables and mask arrays point to memory of the device. Shapes are checked, values are not.
/// Determinism: the same bits on every run and for any number of processors: no two blocks share a sum.
template <class E = bfloat16, class Widths = exec_cuda::default_widths>
struct cuda {
  static_assert(storage_only<E> || std::is_same_v<E, float>,
                "attune: cuda<E> reads bfloat16, float16 or float; other types run on thrust_on");
  using value_type = E;                                       ///< element type of the tensors
  using view = tensor<E const>;                               ///< read-only view of an input
  static constexpr memory_kind memory = memory_kind::device;  ///< where the tensors must be
  using engine = exec_cuda::engine;                           ///< where its rows are computed
  using instead = reference<double>;                          ///< what offers more
  static constexpr call_table offers = exec_cuda::offers;     ///< the calls
  cudaStream_t stream = nullptr;                              ///< calls run in its order
  void* workspace = nullptr;  ///< memory of workspace_bytes(); null: taken from the stream
  std::size_t bytes = 0;      ///< size of `workspace`
};

namespace exec_cuda {

using attune::detail::require_success;

template <class Op, class E, class C>
__global__ void __launch_bounds__(C::threads) forward_kernel(forward_call<Op, E> const __grid_constant__ call) {
  extern __shared__ __align__(128) unsigned char raw[];
  forward_tile<device_warp, Op, E, C> tile(call, std::uint32_t(__cvta_generic_to_shared(raw)), int(threadIdx.x >> 5),
                                           call.block(blockIdx.x));
  tile.run();
}

/// Memory of a stream, given back in the stream's order, also where a launch throws.
class stream_memory {
 public:
  stream_memory(cudaStream_t stream, std::size_t bytes) : stream_(stream) {
    require_success(cudaMallocAsync(&at_, bytes, stream), "memory of the stream");
  }
  stream_memory(stream_memory const&) = delete;
  stream_memory& operator=(stream_memory const&) = delete;
  ~stream_memory() { static_cast<void>(cudaFreeAsync(at_, stream_)); }
  unsigned char* get() const { return static_cast<unsigned char*>(at_); }

 private:
  void* at_ = nullptr;
  cudaStream_t stream_;
};

/// Makes the device of a stream the current one, for a scope. The null stream belongs to the current device.
class device_of_stream {
 public:
  explicit device_of_stream([[maybe_unused]] cudaStream_t stream) {
    require_success(cudaGetDevice(&before_), "the current device");
#if CUDART_VERSION >= 12080
    int of_stream = before_;
    if (stream != nullptr) require_success(cudaStreamGetDevice(stream, &of_stream), "the device of the stream");
    if (of_stream != before_) {
      require_success(cudaSetDevice(of_stream), "the device of the stream");
      moved_ = true;
    }
#endif
  }
  device_of_stream(device_of_stream const&) = delete;
  device_of_stream& operator=(device_of_stream const&) = delete;
  ~device_of_stream() {
    if (moved_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool moved_ = false;
};

/// Bytes of shared memory that a block of the current device may have.
inline int shared_memory_of_device() {
  int device = 0, has = 0;
  require_success(cudaGetDevice(&device), "the current device");
  require_success(cudaDeviceGetAttribute(&has, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
  return has;
}
/// Lets a kernel of tiles, whose first argument is a Call, use `bytes` of shared memory.
template <class Call, class... More>
void allow_shared_memory(void (*kernel)(Call, More...), int bytes) {
  static_assert(sizeof(Call) <= attune::detail::kernel_argument_bytes,
                "attune: cuda: the operator does not fit into the 32,764 bytes of a kernel's arguments");
  static bool const checked = attune::detail::require_same_layout(kernel, sizeof(Call));
  static_cast<void>(checked);
  require_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "shared memory");
}

/// Runs programs and blocks of tiles in the order of a stream.
struct stream_runner {
  static constexpr bool launches = true;  ///< needs memory
  cudaStream_t stream;
  template <class Program>
  void tasks(index_t n, Program const& program) {
    attune::detail::launch_program(stream, n, program);
  }
  void clear(void* at, std::size_t size) { require_success(cudaMemsetAsync(at, 0, size, stream), "a memset"); }
  /// `number` blocks of a kernel, with `bytes` of shared memory each.
  template <class... Given>
  void blocks(void (*kernel)(Given...), index_t number, int threads, int bytes,
              std::type_identity_t<Given> const&... arguments) {
    allow_shared_memory(kernel, bytes);
    attune::detail::launch("the launch of the tiles", kernel, unsigned(number), unsigned(threads), std::size_t(bytes),
                           stream, arguments...);
  }
};

/// Loads what a stream_runner launches, and launches nothing.
struct loading_runner {
  static constexpr bool launches = false;
  template <class Program>
  void tasks(index_t, Program const&) {
    attune::detail::load(attune::detail::program_kernel<Program>);
  }
  void clear(void*, std::size_t) {}
  template <class... Given>
  void blocks(void (*kernel)(Given...), index_t, int, int bytes, std::type_identity_t<Given> const&...) {
    allow_shared_memory(kernel, bytes);
    attune::detail::load(kernel);
  }
};

/// A runner with the tiles of the forward pass.
template <class Runner>
struct forward_runner : Runner {
  template <class Op, class E, class C>
  void tiles(forward_call<Op, E> const& call) {
    require_shared_memory<Op, E, C>(shared_memory_of_device());
    this->blocks(forward_kernel<Op, E, C>, call.blocks(), C::threads, tile_memory<Op, E, C>::bytes, call);
  }
};

}  // namespace exec_cuda

/// Bytes of workspace that forward() needs for these arguments.
template <class E, class Widths, class Op>
std::size_t workspace_bytes(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
                            outputs<Op, E> const& out) {
  problem_shape const p = detail::checked_problem("forward", op, in, out.out.extents(), memory_kind::device);
  exec_cuda::arena count;
  exec_cuda::forward_runner<exec_cuda::stream_runner> runner{{exec.stream}};
  exec_cuda::run_forward<decltype(runner), Op, E>(Widths{}, runner, count, op, in, out, p);
  return count.needed();
}

/// Loads the kernels of forward() for these arguments, and launches nothing. Call it before the first call inside of a
/// graph's capture: CUDA loads a kernel when it is used first, and a capture may refuse that.
template <class E, class Widths, class Op>
void prepare(cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
             outputs<Op, E> const& out) {
  problem_shape const p = detail::checked_problem("prepare", op, in, out.out.extents(), memory_kind::device);
  exec_cuda::device_of_stream const device(exec.stream);
  exec_cuda::arena none;
  exec_cuda::forward_runner<exec_cuda::loading_runner> runner;
  exec_cuda::run_forward<decltype(runner), Op, E>(Widths{}, runner, none, op, in, out, p);
}

namespace exec_cuda {
/// Calls run(arena) twice: to count its memory, then with the executor's workspace or memory of the stream.
template <class E, class Widths, class Run>
void with_workspace(char const* function, cuda<E, Widths> const& exec, Run const& run) {
  arena memory;
  run(memory);
  std::size_t const needed = memory.needed();
  if (exec.workspace != nullptr) require_workspace(function, exec.bytes, needed);
  std::optional<stream_memory> room;
  if (exec.workspace == nullptr) room.emplace(exec.stream, needed);
  memory = {room ? room->get() : static_cast<unsigned char*>(exec.workspace)};
  run(memory);
}
/// Launches a call whose arguments are checked.
template <class E, class Widths, class Op>
void launch_forward(char const* function, cuda<E, Widths> const& exec, Op const& op,
                    inputs<Op, tensor<E const>> const& in, outputs<Op, E> const& out, problem_shape const& p,
                    saved_arrays const& saved) {
  device_of_stream const device(exec.stream);
  forward_runner<stream_runner> runner{{exec.stream}};
  with_workspace(function, exec, [&](arena& memory) {
    run_forward<decltype(runner), Op, E>(Widths{}, runner, memory, op, in, out, p, saved);
  });
}

/// forward() on tensor cores, in the order of the executor's stream; returns before it is done. Errors are thrown
/// before anything is launched, or CUDA reports them.
/// Shapes:      at most as many features as the widest tiles. Rows of 8 n features, 16-byte aligned, are read as they
///              are; other tensors are copied first.
/// Memory:      workspace_bytes(): some 50 bytes a row; copies of what is turned, scaled or gated; of floats, of every
///              query, key and value, 4 bytes a number.
template <class E, class Widths, class Op>
void forward_rows(engine, cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
                  problem_shape const& p, outputs<Op, E> const& out, attune::detail::heads_served const&) {
  launch_forward("forward", exec, op, in, out, p, {});
}
/// forward_and_save(): the saved rows lie in memory of the device, as on every executor (exec/saved.hpp). Copied to the
/// host, vjp(cpu<E>{}, ...) reads them, except for rows of family range_weighted, whose extreme logits it looks for bit
/// by bit.
template <class E, class Widths, class Op, class Rows>
void save_rows(engine, cuda<E, Widths> const& exec, Op const& op, inputs<Op, tensor<E const>> const& in,
               problem_shape const& p, outputs<Op, E> const* out, Rows const& rows,
               attune::detail::heads_served const&) {
  launch_forward("forward_and_save", exec, op, in, *out, p, arrays_of(rows));
}
/// vjp() without its header.
template <class Exec, class... More>
void vjp_rows(engine, Exec const&, More const&...) {
  static_assert(attune::detail::never<Exec>, "attune: vjp() of cuda: include <attune/cuda_gradients.hpp>");
}
/// The same.
template <class Exec, class... More>
void vjp_without_rows(engine, Exec const&, More const&...) {
  static_assert(attune::detail::never<Exec>, "attune: vjp() of cuda: include <attune/cuda_gradients.hpp>");
}

}  // namespace exec_cuda
}  // namespace attune
