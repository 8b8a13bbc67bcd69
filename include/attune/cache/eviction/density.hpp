// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/analysis/eviction/density.hpp. This file goes with version 0.3.
#pragma once

#include <attune/analysis/eviction/density.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/analysis/eviction/density.hpp> instead of <attune/cache/eviction/density.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
