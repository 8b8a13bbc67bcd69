// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

namespace attune::bits {

/// A line for each call of calls.cpp: operator, call, hash.
void print_calls();

}  // namespace attune::bits
