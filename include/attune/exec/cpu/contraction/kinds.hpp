// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every kind of contraction.
#pragma once

#include <attune/exec/cpu/contraction/distance.hpp>
#include <attune/exec/cpu/contraction/feature_sum.hpp>
#include <attune/exec/cpu/contraction/lookup.hpp>
#include <attune/exec/cpu/contraction/metric.hpp>
#include <attune/exec/cpu/contraction/product.hpp>
#include <attune/exec/cpu/contraction/rotary.hpp>
