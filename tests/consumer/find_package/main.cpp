// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <cstdio>

#include <xsimd/xsimd.hpp>

#include <attune/version.hpp>

int main() { std::printf("attune %d.%d.%d\n", ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH); }
