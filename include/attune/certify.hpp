// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Bounds of what any correct kernel may be off by, from an operator's own source: outputs and gradients. Needs neither
// Eigen nor Boost: link attune::certify. Intervals that hold the exact result are attune/certify/enclosure.hpp, which
// needs both, and MPFI.
#pragma once

#include <attune/certify/error_bound.hpp>
#include <attune/certify/gradient_bound.hpp>
#include <attune/certify/number_format.hpp>
