// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
//   forward(on_ranks(ranks, cpu{}), op, inputs, outputs)
//
// attune on several machines: the CPU executor on the ranks of an MPI communicator. Needs MPI.
#pragma once

#include <attune/attune.hpp>
#include <attune/exec/mpi/calls.hpp>
