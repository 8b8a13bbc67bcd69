// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Every preset, compiled for the CPU and the reference.
#include "problem.hpp"

namespace attune::tool {

/// Generated: every preset of the catalogue.
void instantiate_all(std::map<std::string, runner>& to);

std::map<std::string, runner> const& runners() {
  static std::map<std::string, runner> const all = [] {
    std::map<std::string, runner> to;
    instantiate_all(to);
    return to;
  }();
  return all;
}

}  // namespace attune::tool
