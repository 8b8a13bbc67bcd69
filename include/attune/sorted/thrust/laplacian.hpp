// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/line/thrust/laplacian.hpp. This file goes with version 0.3.
#pragma once

#include <attune/sorted/thrust/calls.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/line/thrust/laplacian.hpp> instead of <attune/sorted/thrust/laplacian.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
