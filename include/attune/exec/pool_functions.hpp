// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/threads/pool_functions.hpp. Version 0.3 removes this file.
#pragma once

#include <attune/config.hpp>
#include <attune/threads/pool_functions.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/threads/pool_functions.hpp> instead of <attune/exec/pool_functions.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
