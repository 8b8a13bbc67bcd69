// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Attention over keys on a line, in O(n log n): operators, forward, gradients. Needs xsimd.
#pragma once

#include <attune/line/backward.hpp>
#include <attune/line/forward.hpp>
