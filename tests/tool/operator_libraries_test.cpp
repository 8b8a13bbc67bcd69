// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Operators from libraries beside the program: what is built, loaded and refused.
#include "operator_libraries.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "files.hpp"
#include "unit/io/files.hpp"

using namespace attune;

namespace {

std::string refusal(std::filesystem::path const& folder, std::string const& name, char const* build) {
  try {
    tool::loaded(folder, name, build);
  } catch (tool::usage_error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A library has the name of its preset and entry") {
  CHECK(tool::library_name("softmax", tool::entry::gradient_verdict) == "softmax_gradient_verdict");
  CHECK(tool::library_name("sink", tool::entry::run) == "sink_run");
}

TEST_CASE("What is missing is named with what builds it; after a build that fails nothing is loaded") {
  io_tests::folder const folder;
  CHECK(refusal(folder.path, "softmax_run", nullptr).find("softmax_run.so is missing: scripts/attune builds it") !=
        std::string::npos);
  std::ofstream(folder.path / "softmax_run.so") << "no library";
  CHECK(refusal(folder.path, "softmax_run", "").find("softmax_run.so") != std::string::npos);
  CHECK(refusal(folder.path, "softmax_run", "false").find("softmax_run cannot be built: false softmax_run") !=
        std::string::npos);
  // The command has the name behind it, and runs in front of the load.
  std::string const mark = (folder.path / "asked_").string();
  CHECK(refusal(folder.path, "sink_verdict", ("f() { touch " + mark + "$1; }; f").c_str()).find("missing") !=
        std::string::npos);
  CHECK(std::filesystem::exists(mark + "sink_verdict"));
}
