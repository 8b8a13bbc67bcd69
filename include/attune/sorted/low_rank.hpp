// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/line.hpp. This file goes with version 0.3.
#pragma once

#include <attune/sorted/calls.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/line.hpp> instead of <attune/sorted/low_rank.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
