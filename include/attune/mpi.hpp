// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// One problem on several processes: the ranks of an MPI communicator. Needs MPI (CMake: attune::mpi).
#pragma once

#include <attune/attune.hpp>
#include <attune/exec/mpi/agree.hpp>
#include <attune/exec/mpi/call_facts.hpp>
#include <attune/exec/mpi/communicator.hpp>
#include <attune/exec/mpi/sharding.hpp>
