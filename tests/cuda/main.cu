// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
