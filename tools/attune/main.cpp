// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// attune: the operators of attune on files. docs/reference/command_line.md
#include "commands.hpp"

int main(int argc, char** argv) { return attune::tool::run_program(argc, argv); }
