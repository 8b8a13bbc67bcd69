// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   thrust_on(thrust::device)      thrust_on<double>(thrust::omp::par)      thrust_on(thrust::cuda::par.on(stream))
#pragma once

#include <type_traits>

// Not thrust/execution_policy.h, which includes every algorithm of two systems: some 3 s of nvcc. Code that names a
// policy includes it.
#include <thrust/for_each.h>

#include <attune/core/tensor.hpp>
#include <attune/exec/thrust/offers.hpp>

namespace attune {

template <class T>
struct reference;

/// The memory that the programs of a Thrust execution policy read: device if the policy belongs to the CUDA system,
/// otherwise host.
template <class Policy>
inline constexpr memory_kind memory_of_policy =
#if defined(THRUST_DEVICE_SYSTEM) && defined(THRUST_DEVICE_SYSTEM_CUDA) && \
    THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    std::is_convertible_v<Policy const&, ::thrust::device_system_tag> ? memory_kind::device : memory_kind::host;
#else
    memory_kind::host;
#endif

/// Row programs on Thrust algorithms, with any execution policy: one task per query row (and per stretch of features).
/// T is the type of the tensors and of the arithmetic. Views, parameters, tables and mask arrays point to memory that
/// the policy's system reads. For data on a device, shapes are checked and values are not.
/// Determinism: bitwise the same on every run of a system, for any number of threads: no two tasks share a sum.
/// Memory: forward() allocates the values of a moving average, and 8 bytes a row for a predicate mask where values have
/// more than 32 features; else none. Nothing of size Lq x Lk ever.
template <class T, class Policy>
struct thrust_executor {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: thrust_on<T> computes in float or double");
  using value_type = T;          ///< element type of the tensors
  using view = tensor<T const>;  ///< read-only view of an input
  /// Where the tensors must be.
  static constexpr memory_kind memory = memory_of_policy<Policy>;
  using engine = exec_thrust::engine;                        ///< where its rows are computed
  using instead = reference<T>;                              ///< what offers more
  static constexpr call_table offers = exec_thrust::offers;  ///< the calls

  Policy policy;  ///< the Thrust execution policy
};

/// The executor of an execution policy.
template <class T = float, class Policy>
thrust_executor<T, std::remove_cvref_t<Policy>> thrust_on(Policy const& policy) {
  return {policy};
}

}  // namespace attune
