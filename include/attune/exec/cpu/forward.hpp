// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The CPU executor, forward: forward(), accumulate() and finish(), statistics(); also for 16-bit tensors.
#pragma once

#include <attune/exec/cpu/bf16/forward.hpp>
#include <attune/exec/cpu/composite.hpp>
#include <attune/exec/cpu/tile/forward.hpp>
#include <attune/exec/cpu/tile/split.hpp>
#include <attune/exec/cpu/tile/statistics.hpp>
#include <attune/exec/cpu/tile/stored.hpp>
