// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

// The only place of the version: CMake parses these three lines.
/// The major version.
#define ATTUNE_VERSION_MAJOR 0
/// The minor version.
#define ATTUNE_VERSION_MINOR 1
/// The patch version.
#define ATTUNE_VERSION_PATCH 0
