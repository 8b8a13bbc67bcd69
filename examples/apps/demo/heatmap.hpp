// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Attention weights of the first tokens as a picture: a row per query, a column per key, one more for the ground.
#pragma once

#include <string>
#include <vector>

namespace demo {

/// Labels shared by all heat maps of the page: write this once, before the first of them.
std::string heatmap_labels(std::vector<std::string> const& tokens, std::size_t count);

/// `weights` holds count rows of 1 + count numbers: ground weight, then the weights of the keys.
std::string heatmap(std::vector<float> const& weights, std::size_t count, bool has_ground, std::string const& title);

/// The colour scale with its numbers.
std::string heatmap_legend();

}  // namespace demo
