// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

/// The only place of the version: CMake parses these three lines.
#define ATTUNE_VERSION_MAJOR 0
#define ATTUNE_VERSION_MINOR 1
#define ATTUNE_VERSION_PATCH 0
