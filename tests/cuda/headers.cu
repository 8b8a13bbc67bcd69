// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// No test: what the headers of the others cost to compile, which scripts/registers takes off.
#include "parity.hpp"
