// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Error bounds that hold for every correct kernel, computed from an operator's own source: outputs and gradients. Needs
// neither Eigen nor Boost: link attune::certify. Intervals that contain the exact result are in
// attune/certify/enclosure.hpp, which needs Eigen, Boost and MPFI.
#pragma once

#include <attune/certify/error_bound.hpp>
#include <attune/certify/fold_bound.hpp>
#include <attune/certify/gradient_bound.hpp>
#include <attune/certify/number_format.hpp>
