// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component certify.
#include <attune/certify.hpp>

double half_a_step() { return attune::certify::format_of(attune::certify::storage::fp32).unit; }
