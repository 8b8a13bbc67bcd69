// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One function, compiled once per instruction set: all that the program and its kernels share.
#pragma once

#include <cstddef>

/// out = softmax attention with a causal mask over dense (heads, positions, width) tensors.
using attend_function = void(float const* q, float const* k, float const* v, float* out, std::ptrdiff_t heads,
                             std::ptrdiff_t positions, std::ptrdiff_t width);

extern "C" attend_function attend_baseline, attend_x86_64_v3, attend_x86_64_v4;
