// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Policies, presets and the CPU executor. Needs xsimd; no Eigen, no Boost (those come with attune/reference.hpp).
#pragma once

#include <attune/exec/cpu/backward.hpp>
#include <attune/exec/cpu/directional.hpp>
#include <attune/exec/cpu/forward.hpp>
#include <attune/exec/cpu/mixture.hpp>
#include <attune/exec/cpu/split.hpp>
#include <attune/exec/cpu/statistics.hpp>
#include <attune/exec/cpu/stored.hpp>
#include <attune/operators/row_state.hpp>
#include <attune/policies.hpp>
#include <attune/version.hpp>
