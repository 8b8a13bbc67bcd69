// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// For your own tests: is an operator right, are its gradients right, is somebody else's kernel right? Needs Eigen and
// Boost, and xsimd for the checks of the CPU executor: link attune::testing.
#pragma once

#include <attune/testing/asking/ask_again.hpp>
#include <attune/testing/forward_check.hpp>
#include <attune/testing/gradient_check.hpp>
#include <attune/testing/gradient_verdict.hpp>
#include <attune/testing/probes.hpp>
#include <attune/testing/verdict.hpp>
