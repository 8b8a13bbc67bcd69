// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// The subcommands, one source each. A new one is a function like these, a source command_<name>.cpp and a line in
// add_commands() of program.cpp; what several share (reading a problem from arguments) is call_arguments.hpp.
#pragma once

#include <CLI/CLI.hpp>

namespace attune::tool {

/// What the program returns to the shell.
enum exit_status {
  passed = 0,
  failed_check = 1,  ///< a check that was asked for did not hold
  bad_usage = 2,     ///< arguments, files or shapes that make no sense; the text on stderr says which
  undecidable = 3,   ///< a verdict that these inputs do not allow
};

/// Each adds its subcommand to the program; where that is called, `status` becomes what the program returns.
void add_presets(CLI::App& program, exit_status& status);
void add_explain(CLI::App& program, exit_status& status);
void add_run(CLI::App& program, exit_status& status);
void add_gradient(CLI::App& program, exit_status& status);
void add_verdict(CLI::App& program, exit_status& status);
void add_probes(CLI::App& program, exit_status& status);

/// The whole program: parses, runs, and turns every error into a text on stderr and a status.
int run_program(int argc, char const* const* argv);

}  // namespace attune::tool
