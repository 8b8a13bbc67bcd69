// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The CPU executor for few queries: decode(), on tensors and on pages, of 32, 64 and 16 bits.
#pragma once

#include <attune/exec/cpu/composite.hpp>
#include <attune/exec/cpu/decode/bf16.hpp>
#include <attune/exec/cpu/decode/decode.hpp>
#include <attune/exec/cpu/decode/stored.hpp>
