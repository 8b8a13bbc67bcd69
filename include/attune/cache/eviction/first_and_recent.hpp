// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/analysis/eviction/first_and_recent.hpp. This file goes with version 0.3.
#pragma once

#include <attune/analysis/eviction/first_and_recent.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/analysis/eviction/first_and_recent.hpp> instead of <attune/cache/eviction/first_and_recent.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
