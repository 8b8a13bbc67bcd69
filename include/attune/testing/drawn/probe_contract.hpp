// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   contract_of_probe("hidden NaN")     "NaN in keys and values that no query sees never reaches a result"
#pragma once

#include <string>

namespace attune::testing {

/// The promise that a probe needs and kernels need not make; "" if there is none. Such a probe is in a pack only if the
/// caller is strict. attune's executors make the promise (docs/reference/contracts.md).
inline std::string contract_of_probe(std::string const& name) {
  return name == "hidden NaN" ? "NaN in keys and values that no query sees never reaches a result" : "";
}

}  // namespace attune::testing
