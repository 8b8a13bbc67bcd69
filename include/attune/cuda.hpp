// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The executor `cuda`: tensor cores, for nvcc. With it come all policies and presets.
#pragma once

#include <attune/exec/cuda/executor.hpp>
#include <attune/operators/presets.hpp>
#include <attune/policies.hpp>
