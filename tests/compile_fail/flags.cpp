// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune with flags and macros of the compiler.
#include <attune/attune.hpp>

// expect-error flag_fast_math: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffast-math

// expect-error flag_finite_math_only: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -ffinite-math-only

// expect-error flag_ofast: attune: -ffast-math, -Ofast and -ffinite-math-only
// flags: -Ofast

// expect-error flag_no_exceptions: attune: reports wrong arguments by exceptions
// flags: -fno-exceptions

// expect-error flag_no_vectors: attune: the target has no vector instructions
// flags: -mno-sse2
// unless: xsimd/arch/xsimd_emulated.hpp
