// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   thrust_on(thrust::device)      thrust_on<double>(thrust::omp::par)      thrust_on(thrust::cuda::par.on(stream))
#pragma once

#include <type_traits>

// Not thrust/execution_policy.h, which brings every algorithm of two systems, some 3 s of nvcc: who names a policy
// includes it.
#include <thrust/for_each.h>

#include <attune/core/tensor.hpp>

namespace attune {

/// Whose memory the programs of a Thrust execution policy read: host, or device where the policy is one of the CUDA
/// system.
template <class Policy>
inline constexpr memory_kind memory_of_policy =
#if defined(THRUST_DEVICE_SYSTEM) && defined(THRUST_DEVICE_SYSTEM_CUDA) && \
    THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    std::is_convertible_v<Policy const&, ::thrust::device_system_tag> ? memory_kind::device : memory_kind::host;
#else
    memory_kind::host;
#endif

/// Row programs over Thrust algorithms, on whatever execution policy: one task per query row (and per stretch of
/// features). T is the type of the tensors and of the arithmetic. Views, parameters, tables and mask arrays point to
/// memory that the policy's system reads; of what lies on a device, shapes are checked and values are not.
/// Determinism: bitwise the same on every run of a system, however many threads it has: no task shares a sum with
///              another.
/// Memory: none for forward() with an operator whose normalizer has no moving average; nothing of size Lq x Lk ever.
template <class T, class Policy>
struct thrust_executor {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "attune: thrust_on<T> computes in float or double");
  using value_type = T;
  using view = tensor<T const>;
  static constexpr memory_kind memory = memory_of_policy<Policy>;

  Policy policy;
};

/// The executor of an execution policy.
template <class T = float, class Policy>
thrust_executor<T, std::remove_cvref_t<Policy>> thrust_on(Policy const& policy) {
  return {policy};
}

}  // namespace attune
