// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

// The only place of the version: CMake parses these three lines.
/// The major version.
#define ATTUNE_VERSION_MAJOR 0
/// The minor version.
#define ATTUNE_VERSION_MINOR 2
/// The patch version.
#define ATTUNE_VERSION_PATCH 0

/// The version as one number that grows with every release, for `#if ATTUNE_VERSION >= 200`: major * 10000 +
/// minor * 100 + patch.
#define ATTUNE_VERSION (ATTUNE_VERSION_MAJOR * 10000 + ATTUNE_VERSION_MINOR * 100 + ATTUNE_VERSION_PATCH)
