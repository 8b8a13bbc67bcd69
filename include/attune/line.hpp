// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Attention over keys on a line, in O(n log n): operators, forward, gradients, a sorted key-value cache. Needs xsimd.
#pragma once

#include <attune/line/decode.hpp>
#include <attune/line/forward.hpp>
#include <attune/line/vjp.hpp>
