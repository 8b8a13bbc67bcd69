// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   npy_array x = read_npy("q.npy");   x.shape = {12, 512, 32}, x.data row-major
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace demo {

struct npy_array {
  std::vector<std::ptrdiff_t> shape;
  std::vector<float> data;
};

/// Reads a NumPy file of version 1 to 3 that holds little-endian float32 in C order.
/// Throws std::runtime_error that names the file, what it holds and what was expected.
npy_array read_npy(std::filesystem::path const& file);

}  // namespace demo
