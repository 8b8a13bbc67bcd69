// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/analysis/desiderata.hpp. This file goes with version 0.3.
#pragma once

#include <attune/analysis/desiderata.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/analysis/desiderata.hpp> instead of <attune/analysis/wishes.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
