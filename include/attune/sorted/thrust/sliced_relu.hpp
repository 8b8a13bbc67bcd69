// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/line/thrust/sliced_relu.hpp. This file goes with version 0.3.
#pragma once

#include <attune/sorted/thrust/calls.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/line/thrust/sliced_relu.hpp> instead of <attune/sorted/thrust/sliced_relu.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
