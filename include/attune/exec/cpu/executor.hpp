// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   cpu{}      cpu{threads}      cpu<double>{threads}      cpu<>{serial{}}      cpu<>{my_threads}
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <attune/calls/executor.hpp>
#include <attune/core/storage.hpp>
#include <attune/core/xsimd.hpp>
#include <attune/exec/moving_tensor.hpp>
#include <attune/threads/pool.hpp>

namespace attune {

template <class T>
struct reference;

namespace exec_cpu {
/// Finds the functions that compute rows.
struct engine {};

/// The calls of cpu<T>. narrow: T has 16 bits.
constexpr call_table offers_of_cpu(bool narrow) {
  constexpr offer decodes = without(every_operator, &offer::mixtures, &offer::candidate_sets, &offer::ordered_sums,
                                    &offer::value_gates),
                  single = without(every_operator, &offer::folds, &offer::mixtures);
  call_table x;
  x.forward = every_operator;
  x.forward_and_save = without(every_operator, &offer::mixtures);
  x.vjp = every_operator;
  x.decode = x.paged_decode = decodes;
  if (!narrow) {
    x.jvp = without(every_operator, &offer::mixtures, &offer::candidate_sets, &offer::extremes);
    x.accumulate = without(every_operator, &offer::mixtures, &offer::ordered_sums);
    x.statistics = single;
  } else {  // forward() and decode() read rows of 16 bits; gradients are computed from copies in float
    x.forward = without(x.forward, &offer::mixtures, &offer::pair_inputs);
    x.vjp = without(x.vjp, &offer::mixtures);
    x.decode = x.paged_decode = without(decodes, &offer::pair_inputs);
    x.results = result_place::memory;
  }
  return x;
}
}  // namespace exec_cpu

/// The threads of an executor.
struct cpu_threads {
  int threads = 0;  ///< 0: as many as `executor` runs at once; in a pool, one per processor
  thread_executor_ref executor = thread_pool{};  ///< provides the threads

  constexpr cpu_threads() = default;                                           ///< a thread per processor
  constexpr explicit cpu_threads(int thread_count) : threads(thread_count) {}  ///< on attune's own threads
  /// Runs on the threads of `executor_of_threads`, which must outlive the calls if it has a state.
  template <class Executor>
    requires(std::is_class_v<std::remove_cvref_t<Executor>> &&
             !std::is_base_of_v<cpu_threads, std::remove_cvref_t<Executor>> && !std::convertible_to<Executor, int>)
  constexpr explicit cpu_threads(Executor&& executor_of_threads, int thread_count = 0)
      : threads(thread_count), executor(std::forward<Executor>(executor_of_threads)) {}
};

template <class T, class Arch>
struct cpu;

namespace detail {
template <class>
inline constexpr bool is_cpu = false;
template <class T, class Arch>
inline constexpr bool is_cpu<cpu<T, Arch>> = true;
}  // namespace detail

/// Fused, tiled, multithreaded execution with SIMD. T is the type of the tensors. If T is float or double, it is also
/// the type of the arithmetic. cpu<bfloat16> and cpu<float16> read and write 16 bits and compute in float.
/// Arch is the instruction set. It is a template parameter of all SIMD code, so translation units built for
/// different instruction sets never share a symbol.
/// Determinism: results are bitwise the same for any number of threads and any thread executor (threads/executor.hpp).
/// Memory: scratch of a few hundred KiB per thread, independent of Lq and Lk; with a candidate set, also Lk logits per
///         row of one tile.
template <class T = float, class Arch = xsimd::default_arch>
struct cpu : cpu_threads {
  static_assert(
      std::is_same_v<T, float> || std::is_same_v<T, double> || storage_only<T>,
      "attune: cpu<T> computes in float or double; T may also be attune::bfloat16 or attune::float16, stored only");
  using value_type = T;                  ///< element type of the tensors
  using arch = Arch;                     ///< instruction set
  using view = tensor<T const>;          ///< read-only view of an input
  using moving_view = moving_tensor<T>;  ///< an input of jvp()
  using engine = exec_cpu::engine;       ///< where its rows are computed
  /// An executor that offers more.
  using instead = std::conditional_t<storage_only<T>, cpu<float, Arch>, reference<double>>;
  static constexpr bool reads_saved_rows = true;  ///< vjp() takes the result of forward_and_save()
  /// The calls.
  static constexpr call_table offers = exec_cpu::offers_of_cpu(storage_only<T>);

  using cpu_threads::cpu_threads;
};
// C++20 deduces nothing from inherited constructors.
template <class... Threads>
cpu(Threads const&...) -> cpu<>;

namespace exec_cpu {

/// cpu<T> with the threads of another executor.
template <class T, class Exec>
cpu<T, typename Exec::arch> cpu_like(Exec const& exec) {
  cpu<T, typename Exec::arch> to;
  static_cast<cpu_threads&>(to) = exec;
  return to;
}
template <storage_only S, class Arch>
cpu<float, Arch> float_executor(engine, cpu<S, Arch> const& exec) {
  return cpu_like<float>(exec);
}

}  // namespace exec_cpu
}  // namespace attune
