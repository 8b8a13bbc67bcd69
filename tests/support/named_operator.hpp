// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "../instances/registry.hpp"

namespace attune::test {

/// The operator of this name for a test of its own. Null, and no more to test, only where a configuration has just the
/// archetypes (tests/CMakeLists.txt); a name that is missing from a whole registry fails.
inline instances::entry const* named_operator(std::string const& name) {
  instances::entry const* const found = instances::find(name);
  if (found == nullptr)
    CHECK_MESSAGE(instances::find("scalar_difference/none/none/relu") == nullptr, "no operator " << name);
  return found;
}

}  // namespace attune::test
