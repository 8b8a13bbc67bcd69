// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// diagnostics.json (cases/README.md, section 9): what the parts of its runner share.
#pragma once

#include "computed.hpp"

namespace attune::golden {

// By kind of operation; empty if it is none of theirs.
results diagnose_row(golden_case const& c, instances::backend executor);
results diagnose_selection(golden_case const& c, instances::backend executor);
results diagnose_jacobian(golden_case const& c, instances::backend executor);

}  // namespace attune::golden
