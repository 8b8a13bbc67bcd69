// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/float8_cache.hpp. Version 0.3 removes this file.
#pragma once

#include <attune/config.hpp>
#include <attune/float8_cache.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/float8_cache.hpp> instead of <attune/exec/cpu/float8_cache.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
