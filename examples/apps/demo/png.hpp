// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A small image as a data: address, for a page without external files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace demo {

using palette = std::array<std::array<std::uint8_t, 3>, 256>;

/// Dark violet over green to yellow (after matplotlib's viridis), black over red to light yellow (after its magma):
/// equal steps look equal, in print too.
palette const& violet_to_yellow();
palette const& black_to_cream();

/// A palette image, width x (pixels.size() / width), row by row, as "data:image/png;base64,...".
std::string png_address(std::vector<std::uint8_t> const& pixels, std::size_t width, palette const& colours);

std::string base64(std::string const& bytes);

}  // namespace demo
