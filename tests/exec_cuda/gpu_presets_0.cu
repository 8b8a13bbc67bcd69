// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#define ATTUNE_GROUP 0
#include "gpu_presets.hpp"
