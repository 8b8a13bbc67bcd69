// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The executor `cuda` with its backward pass. Apart from cuda.hpp, since nvcc takes a second to read it.
#pragma once

#include <attune/cuda.hpp>
#include <attune/exec/cuda/gradients/executor.hpp>
