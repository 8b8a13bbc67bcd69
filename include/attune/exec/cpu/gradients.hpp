// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The CPU executor, gradients: forward_and_save() and vjp(), jvp(); both passes of mixtures; also for 16-bit tensors.
#pragma once

#include <attune/exec/cpu/composite.hpp>
#include <attune/exec/cpu/gradients/backward.hpp>
#include <attune/exec/cpu/gradients/bf16/backward.hpp>
#include <attune/exec/cpu/gradients/jvp.hpp>
