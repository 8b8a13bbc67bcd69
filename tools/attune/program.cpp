// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
#include <exception>
#include <iostream>
#include <new>

#include <attune/version.hpp>

#include "commands.hpp"

namespace attune::tool {
namespace {

constexpr char const* description =
    "attune: attention operators on files.\n\n"
    "Arrays are .npy, .npz (FILE:NAME) and .safetensors (FILE:NAME) files of float64, float32, float16 or bfloat16.\n"
    "Tensors have the axes (batch, head, position, feature); leading axes of extent 1 may be missing. Heads of k and v "
    "may be "
    "any\n"
    "divisor of the heads of q.";

constexpr char const* footer =
    "First steps:\n"
    "  attune presets                  what there is\n"
    "  attune explain principled       formula, inputs, parameters, outputs of one\n"
    "  attune run softmax --q q.npy --k k.npy --v v.npy --mask causal --out out.npy\n"
    "  attune verdict softmax --q q.npy --k k.npy --v v.npy --mask causal --out theirs.npy      is that kernel "
    "right?\n\n"
    "Exit status: 0; 1: a verdict is FAIL; 2: bad usage or input, with the reason on standard error; 3: a verdict is "
    "UNDECIDABLE.";

void add_commands(CLI::App& program, exit_status& status) {
  add_presets(program, status);
  add_explain(program, status);
  add_run(program, status);
  add_gradient(program, status);
  add_verdict(program, status);
  add_probes(program, status);
}

}  // namespace

int run_program(int argc, char const* const* argv) {
  CLI::App program(description, "attune");
  program.footer(footer);
  program.require_subcommand(1);
  program.set_version_flag("--version", std::to_string(ATTUNE_VERSION_MAJOR) + "." +
                                            std::to_string(ATTUNE_VERSION_MINOR) + "." +
                                            std::to_string(ATTUNE_VERSION_PATCH));
  exit_status status = passed;
  add_commands(program, status);
  try {
    program.parse(argc, argv);
    return status;
  } catch (CLI::ParseError const& e) {
    return program.exit(e) == 0 ? passed : bad_usage;  // --help is no error
  } catch (std::bad_alloc const&) {
    std::cerr << "attune: not enough memory for a problem of this size\n";
  } catch (std::exception const& e) {
    std::cerr << "attune: " << e.what() << "\n";
  }
  return bad_usage;
}

}  // namespace attune::tool
