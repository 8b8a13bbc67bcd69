// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune on Thrust: policies, presets and the executor thrust_on(policy). Needs Thrust (or CCCL), and
// THRUST_DEVICE_SYSTEM defined unless the compiler is nvcc. Does not need xsimd, Eigen or Boost.
#pragma once

#include <attune/exec/thrust/composite.hpp>
#include <attune/exec/thrust/statistics.hpp>
#include <attune/policies.hpp>
#include <attune/version.hpp>
