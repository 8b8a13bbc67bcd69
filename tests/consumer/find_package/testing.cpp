// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Compiled where the consumer asked for the component testing. Not all of testing.hpp, which takes much longer.
#include <attune/testing/verdict.hpp>

attune::testing::verdict_options options() { return {}; }
