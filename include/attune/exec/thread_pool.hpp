// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Moved to attune/threads/pool.hpp. Version 0.3 removes this file.
#pragma once

#include <attune/config.hpp>
#include <attune/threads/pool.hpp>

#ifndef ATTUNE_ALLOW_OLD_NAMES
#pragma message( \
    "attune: include <attune/threads/pool.hpp> instead of <attune/exec/thread_pool.hpp>, or define ATTUNE_ALLOW_OLD_NAMES")
#endif
