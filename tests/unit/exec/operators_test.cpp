// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The home of the instantiations that operators.hpp declares.
#include "operators.hpp"

namespace attune {
ATTUNE_TEST_INSTANTIATE(, plain_operator)
ATTUNE_TEST_INSTANTIATE(, principled_operator)
ATTUNE_TEST_INSTANTIATE(, given_operator)
}  // namespace attune
