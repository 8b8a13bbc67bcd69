// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// What the registry calls once its executors are in place: every operator by products of bf16 too.
#include "../instances/registry.hpp"

namespace attune::instances {

/// Generated: registers what this library has.
void add_all_bf16(std::map<std::string, entry>&);

void hold_products_of_bf16(std::map<std::string, entry>& all) { add_all_bf16(all); }

}  // namespace attune::instances
