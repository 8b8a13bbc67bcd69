// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Everything the papers measure or bound: docs/reference/analysis.md. Needs Boost and Eigen: link attune::analysis.
#pragma once

#include <attune/analysis/desiderata.hpp>
#include <attune/analysis/gradient_norms.hpp>
#include <attune/analysis/grouping.hpp>
#include <attune/analysis/heads.hpp>
#include <attune/analysis/jacobian.hpp>
#include <attune/analysis/kolmogorov_smirnov.hpp>
#include <attune/analysis/length_law.hpp>
#include <attune/analysis/limits/random_selection.hpp>
#include <attune/analysis/limits/selection.hpp>
#include <attune/analysis/limits/separability.hpp>
#include <attune/analysis/limits/vanishing.hpp>
#include <attune/analysis/matrix.hpp>
#include <attune/analysis/maxent.hpp>
#include <attune/analysis/monitor.hpp>
#include <attune/analysis/numbers.hpp>
#include <attune/analysis/observe.hpp>
#include <attune/analysis/row_shape.hpp>
#include <attune/analysis/similarity.hpp>
#include <attune/analysis/spectrum.hpp>
#include <attune/analysis/weights.hpp>
#include <attune/policies.hpp>
