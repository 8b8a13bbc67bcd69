// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/certify/gradient_bound.hpp, and to namespace attune::certify. This file goes with version 0.3.
#pragma once

#include <attune/certify/gradient_bound.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/certify/gradient_bound.hpp> instead of <attune/testing/gradient_bound.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif

namespace attune::testing {
using namespace certify;
}
