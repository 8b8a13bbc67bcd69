// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/policies/saturated_softplus.hpp. This file goes with version 0.3.
#pragma once

#include <attune/policies/saturated_softplus.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/policies/saturated_softplus.hpp> instead of <attune/policies/strength.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif

namespace attune {

template <class T>
ATTUNE_DEPRECATED("call saturated_softplus")
ATTUNE_HD ATTUNE_INLINE T strength(T const& parameter) {
  return saturated_softplus(parameter);
}

}  // namespace attune
