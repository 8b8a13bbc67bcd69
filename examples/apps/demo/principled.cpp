// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include "check.hpp"

namespace demo {

experiment principled_experiment(principled_choice const& choice) {
  return make_experiment("principled", "none", principled_system{choice}, attune::mask::none{});
}

experiment causal_principled_experiment(principled_choice const& choice) {
  return make_experiment("principled", "causal", principled_system{choice}, attune::mask::causal{});
}

}  // namespace demo
