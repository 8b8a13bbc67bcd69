// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A verdict as a page: one HTML file with everything in it, pictures included.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "judging.hpp"

namespace attune::tool {

/// `call` is the call as reports hold it.
std::string verdict_page(nlohmann::ordered_json const& call, judged_call const& j);

}  // namespace attune::tool
