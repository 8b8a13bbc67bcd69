// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The results as text: tables for a terminal, every number as comma-separated values.
#pragma once

#include <ostream>

#include "shared/text.hpp"
#include "study.hpp"

namespace demo {

void print_tables(std::ostream& to, study_result const& r);
void write_csv(std::ostream& to, study_result const& r);

}  // namespace demo
