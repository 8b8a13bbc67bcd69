// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// A run of the command-line program inside the test: its status and what it printed.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace tool_tests {

struct captured {
  int status = 0;
  std::string out, err;
  bool says(std::string const& part) const { return (out + err).find(part) != std::string::npos; }
};

inline captured attune(std::vector<std::string> const& arguments) {
  std::vector<char const*> argv{"attune"};
  for (auto const& a : arguments) argv.push_back(a.c_str());
  std::ostringstream out, err;
  auto* const old_out = std::cout.rdbuf(out.rdbuf());
  auto* const old_err = std::cerr.rdbuf(err.rdbuf());
  int const status = ::attune::tool::run_program(int(argv.size()), argv.data());
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  return {status, out.str(), err.str()};
}

}  // namespace tool_tests
