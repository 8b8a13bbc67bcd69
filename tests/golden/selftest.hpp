// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A comparison that cannot fail proves nothing: breaks results, expectations and files on purpose.
#pragma once

#include <iosfwd>
#include <string>

namespace attune::golden {

/// Uses the cases below `path`, which have to be the complete set. 0 if every planted error is noticed, else 1.
int selftest(std::string const& path, std::ostream& out);

}  // namespace attune::golden
