// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   require_device_ready<Op>()    true, or a compile error that names the role
//
// The properties that a policy needs, beyond its concept, to run on a device. The host's compiler reports a missing one
// before nvcc's pages of errors. A branch on a score compiles nowhere (policies/probe.hpp). Whether a function is
// marked ATTUNE_HD, only nvcc can see.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/policies/concepts.hpp>

namespace attune {

/// A policy that can be copied to a device byte by byte, and whose bound form can be copied there too.
template <class P>
concept DeviceReady =
    TriviallyCopyable<P> && std::is_trivially_copyable_v<bound_t<P>> && std::is_trivially_destructible_v<bound_t<P>>;

namespace exec_thrust {

template <class Op>
constexpr bool require_device_ready() {
#define ATTUNE_DEVICE_READY(role)                      \
  static_assert(                                       \
      DeviceReady<typename Op::role##_policy>,         \
      "attune: on Thrust what bind(row) of the " #role \
      " policy returns is copied byte by byte: hold numbers and C arrays, no containers. See docs/howto/thrust.md")
  ATTUNE_DEVICE_READY(kernel);
  ATTUNE_DEVICE_READY(length_scale);
  ATTUNE_DEVICE_READY(gate);
  ATTUNE_DEVICE_READY(normalizer);
  ATTUNE_DEVICE_READY(value_gate);
  ATTUNE_DEVICE_READY(output_gate);
#undef ATTUNE_DEVICE_READY
  static_assert(std::is_trivially_copyable_v<Op>,
                "attune: on Thrust an operator is copied byte by byte: one of its policies is not trivially copyable");
  return true;
}

}  // namespace exec_thrust
}  // namespace attune
