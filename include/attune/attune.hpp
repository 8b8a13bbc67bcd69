// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Policies, presets and the CPU executor. Needs xsimd. Does not need Eigen or Boost (attune/reference.hpp does).
#pragma once

#include <attune/exec/cpu/decode.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/gradients.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies.hpp>
#include <attune/version.hpp>

// A message, because this is the most common reason for bad timings and nothing in the program's output shows it.
#if defined(__x86_64__) && !defined(__FMA__) && !defined(ATTUNE_WITHOUT_FMA)
#pragma message( \
    "attune: this code is compiled without FMA and wide registers, some 3 (AVX2) to 6 (AVX-512) times slower than the machine. Add -march=native or -march=x86-64-v3, see examples/apps/dispatch for one binary on many machines, or define ATTUNE_WITHOUT_FMA if it is meant")
#endif
