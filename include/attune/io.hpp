// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Readers and writers of files: npy, npz, safetensors. Needs Boost and nlohmann-json: link attune::io. Compressed npz
// files need attune/io/zlib.hpp too.
#pragma once

#include <attune/io/npy.hpp>
#include <attune/io/npz.hpp>
#include <attune/io/safetensors.hpp>
