// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/line/decode.hpp. This file goes with version 0.3.
#pragma once

#include <attune/cache/calls.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/line/decode.hpp> instead of <attune/cache/decode.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
