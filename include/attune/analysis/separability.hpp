// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/analysis/limits/separability.hpp. This file goes with version 0.3.
#pragma once

#include <attune/analysis/limits/separability.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/analysis/limits/separability.hpp> instead of <attune/analysis/separability.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
