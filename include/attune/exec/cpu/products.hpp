// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The matrix products of the CPU executor and the memory they work in, for code that multiplies its own matrices.
// Nothing here knows a policy.
#pragma once

#include <attune/exec/cpu/products/buffer.hpp>
#include <attune/exec/cpu/products/lanes.hpp>
#include <attune/exec/cpu/products/microkernel.hpp>
#include <attune/exec/cpu/products/outer.hpp>
#include <attune/exec/cpu/products/pack.hpp>
#include <attune/exec/cpu/products/prefetch.hpp>
#include <attune/exec/cpu/products/tiling.hpp>
#include <attune/exec/cpu/products/values.hpp>
