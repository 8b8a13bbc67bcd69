// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The reference executor: Eigen for dense tables, Boost.Multiprecision for scalars of any precision.
#pragma once

#include <attune/exec/reference/backward.hpp>
#include <attune/exec/reference/directional.hpp>
#include <attune/exec/reference/forward.hpp>
#include <attune/exec/reference/multiprecision.hpp>
#include <attune/exec/reference/split.hpp>
#include <attune/exec/reference/statistics.hpp>
#include <attune/policies.hpp>
