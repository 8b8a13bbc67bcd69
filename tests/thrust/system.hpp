// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Which Thrust host system the tests of the registry run on: ATTUNE_THRUST=cpp, omp or tbb in the environment; without
// it they run on the CPU executor.
#pragma once

#include <string>

namespace attune::thrust_tests {

enum class host_system { cpp, omp, tbb };

/// What the environment asks for.
host_system chosen_system();

/// Notes that the registry's operator of this name runs on Thrust.
void replaced(std::string const& name);

}  // namespace attune::thrust_tests
