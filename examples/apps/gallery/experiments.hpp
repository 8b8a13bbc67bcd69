// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

#include "shared/experiment.hpp"

namespace gallery {

using apps::context;
using apps::experiment;
using attune::index_t;

experiment distances();
experiment critical();
experiment separability();
experiment sensitivity();
experiment weights();
experiment principled_grid();

}  // namespace gallery
