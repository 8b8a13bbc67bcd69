// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component analysis.
#include <attune/analysis/observe.hpp>

attune::index_t rows_observed() { return attune::analysis::observation{}.rows; }
