// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The results as one HTML page that needs nothing else.
#pragma once

#include <ostream>

#include "study.hpp"

namespace demo {

void write_report(std::ostream& to, study_result const& r);

/// What this page adds to the style that all have (shared/page_style.hpp), and its script.
extern char const* const report_style;
extern char const* const page_script;

}  // namespace demo
