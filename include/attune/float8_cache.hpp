// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward and decode with 8-bit keys and values: cpu_float8_cache<float8_e4m3fn>
//
// Not part of attune/attune.hpp, since few programs need it. Needs xsimd.
#pragma once

#include <attune/exec/cpu/decode/float8_cache.hpp>
