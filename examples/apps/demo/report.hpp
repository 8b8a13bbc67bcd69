// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The results as one HTML page that needs nothing else.
#pragma once

#include <ostream>

#include "study.hpp"

namespace demo {

void write_report(std::ostream& to, study_result const& r);

/// Style and script of the page.
extern char const* const page_style;
extern char const* const page_script;

}  // namespace demo
